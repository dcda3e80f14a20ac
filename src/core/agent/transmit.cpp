// What the agent sends: new fragments as far as the window allows (P1), repeats before them.
#include <algorithm>
#include <bit>
#include <cstring>

#include "core/agent/state.hpp"

namespace cais::agent {
namespace {

/// Packets that a lane sends before the next one's turn: as many as the kernel takes in one call.
constexpr std::uint32_t turn_packets = 64;

constexpr std::array<std::byte, wire::fragment_bytes_max> zeros{};

/// A rank's own payload of an op that adds nothing does not travel to come back.
void take_own(const Submit& submit, Rank self, const nir::Extent& extent) {
  const nir::Plan& plan = submit.plan;
  if (plan.combine == nir::Combine::reduce || !plan.contributes_payload(self) ||
      !plan.receives_payload(self, extent.unit)) {
    return;
  }
  std::byte* to = destination(submit, self, extent);
  const std::byte* from = source(submit, extent);
  if (to != from) std::memcpy(to, from, extent.bytes);
}

}  // namespace

std::byte* destination(const Submit& submit, Rank whose, const nir::Extent& extent) {
  const bool side_by_side = submit.plan.combine == nir::Combine::concat;
  return submit.recv + (side_by_side ? whose.value * submit.plan.unit_bytes : 0) + extent.offset;
}

const std::byte* source(const Submit& submit, const nir::Extent& extent) {
  return submit.send + extent.unit * submit.plan.unit_bytes + extent.offset;
}

bool Agent::State::poll(Instant now, Transmit& out) {
  if (refused || fenced) return false;
  for (std::size_t tried = 0; tried <= lanes.size(); ++tried) {
    if (sent_in_turn < turn_packets && next_packet(now, lanes[turn], out)) {
      ++sent_in_turn;
      ++counters.sent;
      return true;
    }
    turn = turn + 1 == lanes.size() ? 0 : turn + 1;
    sent_in_turn = 0;
  }
  return false;
}

bool Agent::State::next_packet(Instant now, LaneState& lane, Transmit& out) {
  while (!lane.repeats.empty()) {
    const Seq seq = lane.repeats.front();
    lane.repeats.pop_front();
    if (!lane.in_window(seq) || lane.at(seq).state != Fragment::State::waiting) continue;
    send_repeat(now, lane, seq, out);
    return true;
  }
  // P1: all up to seq − W are settled when the first that is not lies behind it.
  const auto ahead = static_cast<std::size_t>(distance(lane.base, lane.next));
  const bool more = lane.next != lane.recorded_end() || !lane.shares.empty();
  if (!more || ahead >= config.window_fragments) return false;
  if (lane.packets_on_their_way >= congestion.packets()) {
    congestion.held_back();
    return false;
  }
  send_new(now, lane, out);
  return true;
}

/// The next fragment of the lane's next share.
void Agent::State::record_next(LaneState& lane) {
  Share& share = lane.shares.front();
  const Submit& submit = op(share.op).submit;
  Fragment& fragment = lane.at(lane.next);
  if (config.retains && lane.recorded >= lane.window.size()) --op(fragment.op).recorded;
  fragment.applied = false;
  fragment.index = share.left.begin;
  fragment.op = share.op;
  const nir::Extent extent = submit.plan.extent(fragment.index);
  fragment.lacking = owed(submit.plan, config.rank, extent.unit);
  take_own(submit, config.rank, extent);
  ++lane.recorded;
  if (++share.left.begin == share.left.end) lane.shares.pop_front();
}

/// A fragment for the first time in this epoch.
void Agent::State::send_new(Instant now, LaneState& lane, Transmit& out) {
  if (lane.next == lane.recorded_end()) record_next(lane);
  const Seq seq = lane.next;
  Fragment& fragment = lane.at(seq);
  fragment.state = Fragment::State::waiting;
  fragment.due = Fragment::Due::nothing;
  fragment.repeated = fragment.arrived = false;
  fragment.clocked = lane.clocked;
  fragment.finished = fragment.lost = false;
  fragment.sent_at = fragment.spoken_of_at = now;
  fragment.packets = static_cast<std::uint8_t>(std::max(1, std::popcount(fragment.lacking)));
  contribution(lane, seq, fragment, out);

  lane.next = seq + 1;
  ++lane.waiting;
  lane.packets_on_their_way += fragment.packets;
  if (lane.deadline == never) lane.deadline = now + lane.rtt.rto(lane.backoff);
}

void Agent::State::send_repeat(Instant now, LaneState& lane, Seq seq, Transmit& out) {
  Fragment& fragment = lane.at(seq);
  const Fragment::Due due = fragment.due;
  fragment.due = Fragment::Due::nothing;
  fragment.spoken_of_at = now;
  if (due == Fragment::Due::contribution) {
    fragment.repeated = true;
    fragment.sent_at = now;
  }
  ++counters.repeated;
  contribution(lane, seq, fragment, out);
  if (due == Fragment::Due::contribution) return;
  wire::Want want;
  want.ranks = due == Fragment::Due::want ? fragment.lacking : 0;
  want.stamp = static_cast<wire::Stamp>(now.time_since_epoch().count());
  fragment.want = wire::serialize(want);
  out.payload = fragment.want;
  out.padding = {};
  wire::Header header;
  wire::parse(fragment.header, header);
  header.kind = wire::Kind::want;
  wire::serialize(header, out.payload, config.keys, fragment.header, lane.position.round_of(seq));
}

/// The contribution to `seq`, byte for byte the same each time but for the flag (P2). P17: of a
/// fragment that was settled in an earlier epoch it is what was kept: the sum where we have that.
void Agent::State::contribution(const LaneState& lane, Seq seq, Fragment& fragment, Transmit& out) {
  const Op& of = op(fragment.op);
  const nir::Plan& plan = of.submit.plan;
  const nir::Extent extent = plan.extent(fragment.index);
  const bool final = contributes_sum(plan, config.rank, fragment);
  out.lane = lane.lane;
  out.payload = out.padding = {};
  if (plan.contributes_payload(config.rank)) {
    const std::byte* const from = fragment.op < ops_done
                                      ? of.kept.data() + fragment.kept_at
                                      : contributed_from(of.submit, config.rank, fragment);
    out.payload = {from, extent.bytes};
    out.padding = std::span(zeros).first(plan.fragment_bytes - extent.bytes);
  }
  wire::Header header;
  header.session = config.session;
  header.epoch = config.epoch;
  header.rank = config.rank;
  header.lane = lane.lane;
  header.seq = seq;
  header.kind = wire::Kind::contribution;
  header.flags = static_cast<std::uint8_t>((fragment.repeated ? wire::flag_repeat : 0) |
                                           (final ? wire::flag_final : 0));
  header.descriptor = of.submit.descriptor;
  header.chunk = plan.chunk_of(fragment.index);
  header.offset = static_cast<std::uint32_t>(extent.offset / wire::offset_step);
  wire::serialize(header, out.payload, out.padding, config.keys, fragment.header,
                  lane.position.round_of(seq));
  out.header = fragment.header;
}

}  // namespace cais::agent
