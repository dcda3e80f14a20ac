// P9: a switch as one rank of its parent. What goes up: partials of sums, payloads one by one,
// questions and mismatches, each in the name of a rank below. What comes down: results, dones, naks
// and answers to the ranks' questions. It repeats what the parent says that it lacks, and keeps no
// timer and nothing of who has asked: whatever is lost, the agents' questions bring about again.
#include <algorithm>
#include <cstring>

#include "core/switching/state.hpp"

namespace cais::switching {

/// What was found below a child (P12).
Drop Switch::State::mismatch_below(const Arrival& arrival) {
  wire::Mismatch what;
  if (!wire::parse(arrival.payload, what)) return Drop::bad_length;
  if (!contains(arrival.below, what.first) || !contains(arrival.below, what.second)) {
    return Drop::rank_out_of_range;
  }
  return refuse(arrival, what);
}

Drop Switch::State::take_from_above(Arrival& arrival) {
  wire::Mismatch what;
  switch (arrival.header.kind) {
    case wire::Kind::result:
      return take_result(arrival);
    case wire::Kind::done:
      return take_done(arrival);
    case wire::Kind::nak:
      return take_nak(arrival);
    case wire::Kind::waiting:
      return take_waiting(arrival);
    case wire::Kind::mismatch:
      return wire::parse(arrival.payload, what) ? refuse(arrival, what) : Drop::bad_length;
    case wire::Kind::contribution:
    case wire::Kind::want:
    case wire::Kind::no_session:
      break;
  }
  return Drop::wrong_kind;
}

/// Nothing comes down for a fragment before something of it went up, so a slot holds it, unless it
/// has been recycled.
Drop Switch::State::take_result(Arrival& arrival) {
  const wire::Header& header = arrival.header;
  Slot& slot = arrival.lane->slot(arrival.seq());
  if (!slot.holds(arrival.seq())) return Drop::stale_seq;
  if (header.descriptor != slot.descriptor) return Drop::unknown_descriptor;
  if (header.chunk != slot.chunk || header.offset != slot.offset) return Drop::wrong_place;
  const nir::Plan& plan = arrival.session->programs[slot.program].plan;
  if (plan.fragment_bytes == 0 || arrival.payload.size() != plan.fragment_bytes) {
    return Drop::bad_length;
  }
  const bool finished = (header.flags & wire::flag_finished) != 0;
  if (finished && !arrival.session->complete(slot)) return Drop::violation;
  if (plan.combine != nir::Combine::reduce) return take_payload(slot, arrival);
  return finished ? take_sum(slot, arrival) : Drop::wrong_kind;
}

/// The sum takes the place of the partial.
Drop Switch::State::take_sum(Slot& slot, const Arrival& arrival) {
  if (slot.state == Slot::State::finished) return Drop::stale_seq;
  const Session& session = *arrival.session;
  const nir::Plan& plan = session.programs[slot.program].plan;
  const RankSet owed = session.children_above(receivers(plan, slot.unit));
  if (owed == 0) return Drop::wrong_kind;
  const std::span<const std::byte> bytes = arrival.packet.bytes;
  std::memcpy(arrival.lane->cells.at(slot.result), bytes.data(), bytes.size());
  slot.state = Slot::State::finished;
  send_result(slot, arrival, owed);
  send_done(slot, arrival, session.children & ~owed);
  finish(slot, arrival);
  return Drop::none;
}

/// P10: the payload of a rank that is not below, for those who are.
Drop Switch::State::take_payload(Slot& slot, Arrival& arrival) {
  const Session& session = *arrival.session;
  const nir::Plan& plan = session.programs[slot.program].plan;
  const Rank whose = arrival.rank();
  const RankSet entitled = receivers(plan, slot.unit) & session.members;
  if (contains(session.members, whose) || !plan.contributes_payload(whose) || entitled == 0) {
    return Drop::wrong_kind;
  }
  Kept& kept = arrival.lane->kept(slot, whose);
  const bool news = kept.empty();
  const bool ends =
      slot.state == Slot::State::open && (arrival.header.flags & wire::flag_finished) != 0;
  if (!news && !ends) return Drop::stale_seq;
  RankSet told = 0;
  if (ends) slot.state = Slot::State::finished;
  if (news) {
    keep(kept, arrival);  // with the header of a result, as it came
    slot.contributed |= only(whose);
    told = session.children_above(entitled) & session.present(slot);
    send_payload(arrival, whose, told);
  }
  if (!ends) return Drop::none;
  send_done(slot, arrival, session.children & ~told);
  finish(slot, arrival);
  return Drop::none;
}

Drop Switch::State::take_done(const Arrival& arrival) {
  if (!arrival.payload.empty()) return Drop::bad_length;
  const Session& session = *arrival.session;
  LaneState& lane = *arrival.lane;
  bool news = false;
  for (std::uint32_t i = 0; i < std::min<std::size_t>(arrival.header.chunk, lane.slots.size());
       ++i) {
    Slot& slot = lane.slot(arrival.seq() + i);
    if (!slot.holds(arrival.seq() + i) || slot.state != Slot::State::open ||
        slot.descriptor != arrival.header.descriptor || !session.complete(slot)) {
      continue;
    }
    const nir::Plan& plan = session.programs[slot.program].plan;
    const bool sums = plan.combine == nir::Combine::reduce;
    if (sums && (receivers(plan, slot.unit) & session.members) != 0) continue;  // a sum is owed
    if (slot.result != CellPool::none) lane.cells.release(slot.result);
    slot.result = CellPool::none;
    slot.state = Slot::State::finished;
    send_done(slot, arrival, session.children);
    finish(slot, arrival);
    news = true;
  }
  return news ? Drop::none : Drop::stale_seq;
}

/// P11: the parent misses what we have sent of these fragments, all of it or some.
Drop Switch::State::take_nak(const Arrival& arrival) {
  if (!arrival.payload.empty()) return Drop::bad_length;
  LaneState& lane = *arrival.lane;
  bool news = false;
  for (std::uint32_t i = 0; i < std::min<std::size_t>(arrival.header.chunk, lane.slots.size());
       ++i) {
    const Slot& slot = lane.slot(arrival.seq() + i);
    if (!slot.holds(arrival.seq() + i) || slot.state != Slot::State::open) continue;
    news |= send_up_again(slot, arrival, arrival.session->members);
  }
  return news ? Drop::none : Drop::stale_seq;
}

/// P16: how a fragment stands above: what of it should have come from here goes up again, and who
/// asked is told whom it waits for. Of the ranks below we know better.
Drop Switch::State::take_waiting(const Arrival& arrival) {
  wire::Stamp stamp = 0;
  if (arrival.payload.empty()) return Drop::none;  // to a repeat: it is there
  if (!wire::parse(arrival.payload, stamp)) return Drop::bad_length;
  const Session& session = *arrival.session;
  const Slot& slot = arrival.lane->slot(arrival.seq());
  if (!slot.holds(arrival.seq()) || slot.state != Slot::State::open) return Drop::stale_seq;
  if (arrival.header.descriptor != slot.descriptor) return Drop::unknown_descriptor;
  const RankSet named = wire::named_ranks(arrival.header);
  send_up_again(slot, arrival, named);
  const RankSet lacking = (named & ~session.members) | (session.members & ~slot.contributed);
  if (lacking == 0 || !contains(session.members, arrival.rank())) return Drop::none;
  const Rank child = session.child_of[arrival.rank().value].name;
  Outgoing entry = control(arrival, wire::Kind::waiting, slot.seq, only(child));
  entry.header.rank = arrival.rank();
  wire::name_ranks(entry.header, lacking);
  entry.attach(wire::serialize(stamp));
  push(entry);
  return Drop::none;
}

/// P7: a question about a slot that is not finished above, or for payloads that are not here, goes
/// up in the name of who asked. For a sum we ask by name: we lack it ourselves.
void Switch::State::ask_above(const Slot& slot, const Arrival& arrival, RankSet absent,
                              wire::Stamp stamp) {
  const nir::Plan& plan = arrival.session->programs[slot.program].plan;
  const RankSet owed = receivers(plan, slot.unit) & arrival.session->members;
  wire::Want want{absent, stamp};
  if (plan.combine == nir::Combine::reduce && owed != 0) want.ranks = 1;
  Outgoing entry = upward(arrival, wire::Kind::want, slot.seq, arrival.rank());
  entry.attach(wire::serialize(want));
  push(entry);
}

/// Our contribution: a partial, or that of the rank `whose`. A payload that nobody is owed who is
/// not below stays here; the parent learns that it came.
void Switch::State::send_up(const Slot& slot, const Arrival& arrival, Rank whose) {
  const Session& session = *arrival.session;
  const nir::Plan& plan = session.programs[slot.program].plan;
  Outgoing entry = upward(arrival, wire::Kind::contribution, slot.seq, whose);
  entry.header.descriptor = slot.descriptor;
  entry.header.chunk = slot.chunk;
  entry.header.offset = slot.offset;
  if (plan.combine == nir::Combine::reduce) {
    if (slot.result != CellPool::none) entry.content = Outgoing::Content::result;
    if (slot.final != 0) entry.header.flags = wire::flag_final;  // P17
  } else if ((receivers(plan, slot.unit) & ~session.members) != 0 &&
             !arrival.lane->kept(slot, whose).empty()) {
    entry.content = Outgoing::Content::payload;
  }
  push(entry);
}

/// Of what the parent lacks, all that has gone up before; false when it is not from us.
bool Switch::State::send_up_again(const Slot& slot, const Arrival& arrival, RankSet lacked) {
  const Session& session = *arrival.session;
  const RankSet ours = lacked & session.members & slot.contributed;
  if (session.programs[slot.program].plan.combine == nir::Combine::reduce) {
    if (ours == 0 || !session.complete(slot)) return false;
    send_up(slot, arrival, session.name());
    return true;
  }
  for_each(ours, [&](Rank whose) { send_up(slot, arrival, whose); });
  return ours != 0;
}

}  // namespace cais::switching
