// The agent's logical state as one number: what decides which packets it takes and sends. Of time
// only what it would decide now; not how fast it sends (round-trip times, the length of timers,
// the congestion window's round), nor what it merely reports (counters, waits_for).
#include "base/fingerprint.hpp"

#include <algorithm>

#include "core/agent/state.hpp"

namespace cais::agent {
namespace {

void walk_fragment(const Op& op, const Fragment& fragment, bool patient, Fingerprint& walk) {
  walk.number(static_cast<std::uint64_t>(fragment.state) |
              static_cast<std::uint64_t>(fragment.due) << 2 |
              std::uint64_t{fragment.repeated} << 4 | std::uint64_t{fragment.asked()} << 5 |
              std::uint64_t{fragment.finished} << 6 | std::uint64_t{patient} << 7 |
              std::uint64_t{fragment.applied} << 8 | std::uint64_t{fragment.lost} << 9 |
              std::uint64_t{fragment.index} << 32);
  walk.number(fragment.op);
  // Rank 0's bit stands for a sum, whoever is called so.
  if (op.submit.plan.combine == nir::Combine::reduce) return walk.number(fragment.lacking);
  walk.ranks(fragment.lacking);
}

}  // namespace

void Agent::State::walk_lane(Instant now, const LaneState& lane, Fingerprint& walk) const {
  walk.number(lane.base.value);
  walk.number(lane.next.value);
  walk.number(lane.settled_end.value);
  walk.number(lane.waiting);
  walk.number(lane.packets_on_their_way);
  const bool recovers = before(lane.recover_from, lane.recover_end);
  walk.number(std::min(lane.backoff, 2u) | std::uint64_t{lane.deadline == never} << 8 |
              std::uint64_t{now < lane.next_scan} << 9 | std::uint64_t{recovers} << 10);
  if (recovers) {
    walk.number(lane.recover_from.value);
    walk.number(lane.recover_end.value);
  }
  for (const Seq seq : lane.repeats) walk.number(seq.value);
  for (const Share& share : lane.shares) {
    walk.number(share.op);
    walk.number(share.left.begin);
    walk.number(share.left.end);
  }
  const Duration patience = patience_of(lane);
  walk.number(lane.recorded);
  for (Seq seq = lane.base; before(seq, lane.recorded_end()); seq = seq + 1) {
    const Fragment& fragment = lane.at(seq);
    if (fragment.state == Fragment::State::settled) {
      walk.number(0);
      continue;
    }
    walk_fragment(op(fragment.op), fragment, now - fragment.spoken_of_at < patience, walk);
  }
}

void Agent::fingerprint(Instant now, Fingerprint& walk) const {
  const State& state = *state_;
  walk.number(state.refused | std::uint64_t{state.fenced} << 1 |
              std::uint64_t{state.told_no_session} << 2);
  walk.number(state.config.epoch.value);
  walk.number(state.ops_done);
  walk.number(state.ops_first);
  walk.number(state.ops.size());
  walk.number(state.events.size());
  walk.number(state.congestion.packets());
  if (state.refused) return;
  for (const LaneState& lane : state.lanes) state.walk_lane(now, lane, walk);
}

}  // namespace cais::agent
