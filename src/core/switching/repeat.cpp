// What a rank gets that asks again (P7, P10, P16), and what it is told when the switch sees a gap
// (P11).
#include "core/switching/state.hpp"

namespace cais::switching {

/// P7. What is finished here but not above goes up again, or is asked about there (P9). The reply
/// is never larger than what the child has sent: whoever is owed a sum has contributed as much.
Drop Switch::State::repeat(const Slot& slot, const Arrival& arrival,
                           std::optional<wire::Stamp> stamp) {
  const Session& session = *arrival.session;
  const RankSet asker = only(arrival.child);
  const nir::Plan& plan = session.programs[slot.program].plan;
  if (session.asks_above(slot)) {
    if (stamp) {
      ask_above(slot, arrival, 0, *stamp);
    } else {
      send_up_again(slot, arrival, only(arrival.rank()));
    }
  } else if (slot.state == Slot::State::open) {
    send_waiting(slot, arrival, stamp);
  } else if (slot.result != CellPool::none &&
             (session.children_above(receivers(plan, slot.unit)) & asker) != 0) {
    send_result(slot, arrival, asker);
  } else {
    send_done(slot, arrival, asker);
  }
  ++counters.repeats_answered;
  return Drop::none;
}

/// P7, P10, P16: the sum or the payloads that a rank lacks, or how the fragment stands. A rank
/// whose own contribution never came here is told so instead: nobody can settle the fragment before
/// it has.
Drop Switch::State::want(const Arrival& arrival) {
  wire::Want lacked;
  if (!wire::parse(arrival.payload, lacked)) return Drop::bad_length;
  LaneState& lane = *arrival.lane;
  const Session& session = *arrival.session;
  const std::int32_t ahead =
      distance(lane.progress[arrival.child.value].next_missing, arrival.seq());
  Slot& slot = lane.slot(arrival.seq());
  if (!slot.holds(arrival.seq()) || (slot.contributed & arrival.below) == 0) {
    if (ahead < 0) return Drop::stale_seq;
    if (ahead >= static_cast<std::int32_t>(arrival.session->config.window_fragments)) {
      return violated(arrival);
    }
    send_nak(arrival, arrival.seq(), 1);
    return Drop::none;
  }
  if (arrival.header.descriptor != slot.descriptor) return Drop::unknown_descriptor;
  const Program& program = arrival.session->programs[slot.program];
  if (program.plan.combine == nir::Combine::reduce && lacked.ranks != 0) {
    return repeat(slot, arrival, lacked.stamp);
  }

  const RankSet asker = only(arrival.child);
  bool answered = false;
  RankSet absent = 0;  // payloads that only the parent can have
  if ((receivers(program.plan, slot.unit) & arrival.below) != 0) {
    for_each(lacked.ranks & slot.contributed & ~arrival.below, [&](Rank whose) {
      if (lane.kept(slot, whose).empty()) return;
      mark_as_result(slot, arrival, whose);
      send_payload(arrival, whose, asker);
      answered = true;
    });
    if (session.has_parent()) absent = lacked.ranks & ~slot.contributed & ~session.members;
  }
  if (absent != 0 || (!answered && session.asks_above(slot))) {
    ask_above(slot, arrival, absent, lacked.stamp);
  } else if (!answered && slot.state == Slot::State::open) {
    send_waiting(slot, arrival, lacked.stamp);
  } else if (!answered) {
    send_done(slot, arrival, asker);
  }
  ++counters.repeats_answered;
  return Drop::none;
}

/// P12: whoever missed the refusal hears it again when it speaks.
Drop Switch::State::refuse_again(const Arrival& arrival) {
  send_refusal(arrival, only(arrival.child));
  return Drop::mismatch;
}

/// P11, with a small tolerance for packets that overtake each other. One NAK names the whole run
/// of missing fragments; for what is lost again the agent's timer answers.
void Switch::State::note_gap(const Arrival& arrival) {
  LaneState& lane = *arrival.lane;
  Progress& progress = lane.progress[arrival.child.value];
  const auto has = [&](Seq seq) {
    const Slot& slot = lane.slot(seq);
    return slot.holds(seq) && (arrival.below & ~slot.contributed) == 0;
  };
  // A rank brings a fragment at once; a switch may not have brought all of it yet.
  if (arrival.session->config.place.level > 1 && !has(arrival.seq())) return;
  if (!before(arrival.seq(), progress.end)) progress.end = arrival.seq() + 1;
  if (arrival.seq() == progress.next_missing) {
    progress.next_missing = progress.next_missing + 1;
    while (before(progress.next_missing, progress.end) && has(progress.next_missing)) {
      progress.next_missing = progress.next_missing + 1;
    }
    if (before(progress.nak_until, progress.next_missing)) {
      progress.nak_until = progress.next_missing;
      progress.beyond = 0;
    }
    return;
  }
  if (progress.next_missing != progress.nak_until) return;  // a NAK is out
  if (++progress.beyond < reorder_tolerance_packets) return;
  progress.beyond = 0;
  while (!has(progress.nak_until)) progress.nak_until = progress.nak_until + 1;
  const std::int32_t run = distance(progress.next_missing, progress.nak_until);
  send_nak(arrival, progress.next_missing, static_cast<std::uint32_t>(run));
}

}  // namespace cais::switching
