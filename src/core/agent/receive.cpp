// What the agent takes: results and dones once, inside the window (P3), naks, refusals, and whom
// the switch waits for (P16).
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/agent/state.hpp"

namespace cais::agent {
namespace {

/// How many fragments a done or a nak speaks for; never more than there are in a window.
std::uint32_t run_length(const LaneState& lane, const wire::Header& header) {
  return std::min<std::uint32_t>(header.chunk, static_cast<std::uint32_t>(lane.window.size()));
}

constexpr unsigned backoff_kept_max = 1;

/// The fragment at `seq` when it was sent and is not known to be finished; otherwise none.
Fragment* unfinished(LaneState& lane, Seq seq) {
  if (!lane.in_window(seq)) return nullptr;
  Fragment& fragment = lane.at(seq);
  const bool waits = fragment.state == Fragment::State::waiting && !fragment.finished;
  return waits ? &fragment : nullptr;
}

}  // namespace

Agent::State::Outcome Agent::State::receive(Instant now, std::span<const std::byte> packet) {
  wire::Header header;
  if (wire::parse(packet, header) != wire::ParseError::none) return Outcome::malformed;
  if (header.session != config.session || header.epoch != config.epoch ||
      header.lane.value >= lanes.size() || header.rank.value >= config.ranks || fenced) {
    return Outcome::foreign;
  }
  if (refused) return Outcome::stale;
  LaneState& lane = lanes[header.lane.value];
  const std::span<const std::byte> payload = packet.subspan(wire::header_bytes);
  if (header.kind == wire::Kind::no_session) {
    return no_session(lane, header, packet);
  }
  // A late duplicate is seen by its place alone; its payload need not be read.
  if (header.kind == wire::Kind::result &&
      (!lane.in_window(header.seq) || lane.at(header.seq).state == Fragment::State::settled)) {
    return Outcome::stale;
  }
  if (!wire::tag_is_right(packet, config.keys, lane.position.round_of(header.seq))) {
    return Outcome::wrong_tag;
  }
  switch (header.kind) {
    case wire::Kind::result:
      return result(now, lane, header, payload);
    case wire::Kind::done:
      return payload.empty() ? done(now, lane, header) : Outcome::malformed;
    case wire::Kind::nak:
      return payload.empty() ? nak(now, lane, header) : Outcome::malformed;
    case wire::Kind::mismatch:
      return mismatch(lane, header, payload);
    case wire::Kind::waiting:
      return waiting(now, lane, header, payload);
    case wire::Kind::contribution:
    case wire::Kind::want:
    case wire::Kind::no_session:
      break;
  }
  return Outcome::foreign;
}

Agent::State::Outcome Agent::State::result(Instant now, LaneState& lane, const wire::Header& header,
                                           std::span<const std::byte> payload) {
  Fragment& fragment = lane.at(header.seq);
  const Submit& submit = op(fragment.op).submit;
  const nir::Plan& plan = submit.plan;
  if (header.descriptor != submit.descriptor) return Outcome::foreign;
  if (payload.size() != plan.fragment_bytes) return Outcome::malformed;
  const std::uint64_t whose = 1ull << header.rank.value;
  const bool finished = (header.flags & wire::flag_finished) != 0;
  const bool news = (fragment.lacking & whose) != 0;
  if (!news && (fragment.finished || !finished)) return Outcome::stale;
  if (news) {
    const nir::Extent extent = plan.extent(fragment.index);
    const bool side_by_side = plan.combine == nir::Combine::concat;
    std::byte* unit = submit.recv + (side_by_side ? header.rank.value * plan.unit_bytes : 0);
    std::memcpy(unit + extent.offset, payload.data(), extent.bytes);
    fragment.lacking &= ~whose;
    --fragment.packets;
    --lane.packets_on_their_way;
  }
  fragment.finished |= finished;
  if (fragment.finished && fragment.lacking == 0) settle(now, lane, header.seq);
  repeat_overtaken(now, lane);
  return Outcome::accepted;
}

/// One done may speak for a run of fragments.
Agent::State::Outcome Agent::State::done(Instant now, LaneState& lane, const wire::Header& header) {
  const std::uint32_t count = run_length(lane, header);
  bool news = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Seq seq = header.seq + i;
    Fragment* const fragment = unfinished(lane, seq);
    if (fragment == nullptr) continue;
    if (op(fragment->op).submit.descriptor != header.descriptor) return Outcome::foreign;
    fragment->finished = news = true;
    if (fragment->lacking == 0) {
      settle(now, lane, seq);
    } else if (fragment->asked()) {
      repeat_lost(lane, seq, Fragment::Due::want);
    }
  }
  if (!news) return Outcome::stale;
  repeat_overtaken(now, lane);
  return Outcome::accepted;
}

/// P11: the switch misses a run of our fragments.
Agent::State::Outcome Agent::State::nak(Instant now, LaneState& lane, const wire::Header& header) {
  const std::uint32_t count = run_length(lane, header);
  bool news = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Seq seq = header.seq + i;
    const Fragment* const fragment = unfinished(lane, seq);
    if (fragment == nullptr) continue;
    // A second NAK on the heels of a repeat was sent before the repeat got there.
    news = true;
    if (!fragment->repeated || now - fragment->sent_at >= lane.rtt.smoothed() / 2) {
      repeat_lost(lane, seq, Fragment::Due::contribution);
    }
  }
  if (!news) return Outcome::stale;
  ++counters.naks;
  return Outcome::accepted;
}

Agent::State::Outcome Agent::State::waiting(Instant now, LaneState& lane,
                                            const wire::Header& header,
                                            std::span<const std::byte> payload) {
  wire::Stamp asked_at = 0;
  if (!payload.empty() && !wire::parse(payload, asked_at)) return Outcome::malformed;
  Fragment* const fragment = unfinished(lane, header.seq);
  if (fragment == nullptr) return Outcome::stale;
  if (op(fragment->op).submit.descriptor != header.descriptor) return Outcome::foreign;
  const std::uint64_t missing = wire::named_ranks(header);
  const Instant asked(Duration(static_cast<std::int64_t>(asked_at)));
  if (!payload.empty() && asked >= fragment->sent_at && asked <= now) {
    lane.rtt.question_answered(now, now - asked);
  }
  lane.deadline = std::max(lane.deadline, now + lane.rtt.rto(lane.backoff));
  fragment->arrived = (missing >> config.rank.value & 1) == 0;
  const bool adds = op(fragment->op).submit.plan.combine == nir::Combine::reduce;
  if (!adds && (fragment->lacking & ~missing) != 0 && fragment->due == Fragment::Due::nothing) {
    repeat_lost(lane, header.seq, Fragment::Due::want);
  }
  lane.held_up_at = header.seq;
  lane.held_up_by = missing;
  return Outcome::accepted;
}

Agent::State::Outcome Agent::State::mismatch(LaneState& lane, const wire::Header& header,
                                             std::span<const std::byte> payload) {
  wire::Mismatch what;
  if (!wire::parse(payload, what)) return Outcome::malformed;
  if (all_done()) return Outcome::stale;
  // Ours at that place; when we are not there yet, the next one to be done.
  OpNumber number = ops_done;
  Seq first = lane.recorded_end();
  if (!before(header.seq, lane.base) && before(header.seq, first)) number = lane.at(header.seq).op;
  for (const Share& share : lane.shares) {
    if (!before(header.seq, first) && before(header.seq, first + share.left.count())) {
      number = share.op;
    }
    first = first + share.left.count();
  }
  refused = true;
  events.push_back(Mismatched{op(std::max(number, ops_done)).submit.op, what.first, what.second,
                              what.first_descriptor, what.second_descriptor});
  ops_first = ops_done;
  ops.clear();
  for (LaneState& each : lanes) each.deadline = never;
  return Outcome::accepted;
}

/// P16. Whoever saw the question may have written the answer: it says nothing more than that the
/// management should be asked.
Agent::State::Outcome Agent::State::no_session(LaneState& lane, const wire::Header& header,
                                               std::span<const std::byte> packet) {
  const Fragment* const fragment = unfinished(lane, header.seq);
  if (fragment == nullptr || told_no_session) return Outcome::stale;
  if (!fragment->asked() || !wire::denies(packet, fragment->header)) return Outcome::wrong_tag;
  told_no_session = true;
  events.push_back(NoSession{lane.lane});
  return Outcome::accepted;
}

void Agent::State::settle(Instant now, LaneState& lane, Seq seq) {
  Fragment& fragment = lane.at(seq);
  fragment.state = Fragment::State::settled;
  // What was asked about may come late because it was lost on its way to us, unless the switch said
  // that it waited itself.
  if (!fragment.repeated && (!fragment.asked() || fragment.arrived)) {
    lane.rtt.sample(now, now - fragment.sent_at, fragment.clocked);
  }
  lane.clocked = true;
  congestion.settled();
  if (now >= round_end) end_round(now);
  --lane.waiting;
  lane.packets_on_their_way -= fragment.packets;
  // Karn's rule, up to a bound: nothing but a fragment sent once tells that the timeout is long
  // enough. Where most are lost, waiting for one would take for ever.
  lane.backoff = fragment.repeated ? std::min(lane.backoff, backoff_kept_max) : 0;
  lane.deadline = lane.waiting == 0 ? never : now + lane.rtt.rto(lane.backoff);
  if (!before(seq, lane.settled_end)) lane.settled_end = seq + 1;
  recover_after(lane, fragment);
  while (lane.base != lane.next && lane.at(lane.base).state == Fragment::State::settled) {
    lane.base = lane.base + 1;
  }
  lane.position.advance(lane.base);
  // Never left behind by half the numbers there are.
  if (before(lane.recover_from, lane.base)) lane.recover_from = lane.base;
  if (before(lane.recover_end, lane.base)) lane.recover_end = lane.base;
  if (std::exchange(fragment.applied, true)) return;
  --op(fragment.op).unsettled;
  while (!all_done() && op(ops_done).unsettled == 0) finish(ops_done++);
  forget_ops();
}

/// The lane whose answers queue longest counts: others may have less of a way, or none when the
/// switch is in this process.
void Agent::State::end_round(Instant now) {
  Duration quickest{0};
  Duration queued{0};
  Duration round{0};
  for (LaneState& lane : lanes) {
    const Duration of_lane = lane.rtt.take_quickest();
    if (of_lane > Duration(0) && of_lane - lane.rtt.least() >= queued) {
      quickest = of_lane;
      queued = of_lane - lane.rtt.least();
    }
    round = std::max(round, lane.rtt.smoothed());
  }
  congestion.end_round(quickest, queued);
  round_end = now + round;
}

}  // namespace cais::agent
