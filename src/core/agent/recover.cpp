// How the agent gets through losses (P2): a timer for each lane's oldest fragment, repeats of what
// later results have overtaken, and after a timeout as many repeats as the answers call forth.
#include <algorithm>

#include "core/agent/state.hpp"

namespace cais::agent {
namespace {

/// A machine that sleeps for a moment looks like a lost window. A timeout repeats a few fragments
/// only; each of them that is answered calls forth two more, and an answer to a fragment that was
/// not repeated says that nothing was lost (the idea of F-RTO, RFC 5682).
constexpr std::uint32_t repeats_per_timeout = 4;
constexpr std::uint32_t repeats_per_answer = 2;

/// Later fragments that must be settled before one counts as overtaken.
constexpr std::int32_t overtaken_by = 3;
/// A contribution that was lost is repaired by its NAK within two round trips; only then is it
/// the result that was lost.
constexpr int overtaken_round_trips = 2;
constexpr int scans_per_round_trip = 4;

}  // namespace

void Agent::State::queue_repeat(LaneState& lane, Seq seq, Fragment::Due due) {
  Fragment& fragment = lane.at(seq);
  if (fragment.due == Fragment::Due::nothing) lane.repeats.push_back(seq);
  fragment.due = due;
}

/// What adds nothing is repeated by asking (P10): the question is small, and the answer says
/// whether it is our contribution that is missing.
void Agent::State::queue_repeat(LaneState& lane, Seq seq) {
  const Fragment& fragment = lane.at(seq);
  if (fragment.due != Fragment::Due::nothing) return;
  const bool adds = op(fragment.op).submit.plan.combine == nir::Combine::reduce;
  queue_repeat(lane, seq, adds ? Fragment::Due::contribution : Fragment::Due::want);
}

void Agent::State::timeout(Instant now, LaneState& lane) {
  ++counters.timeouts;
  ++lane.backoff;
  lane.deadline = now + rtt.rto(lane.backoff);
  lane.recovering = true;
  lane.recover_from = lane.base;
  lane.recover_end = lane.next;
  recover_further(lane, repeats_per_timeout);
}

void Agent::State::recover_further(LaneState& lane, std::uint32_t count) {
  if (before(lane.recover_from, lane.base)) lane.recover_from = lane.base;
  while (count > 0 && before(lane.recover_from, lane.recover_end)) {
    if (lane.at(lane.recover_from).state == Fragment::State::waiting) {
      queue_repeat(lane, lane.recover_from);
      --count;
    }
    lane.recover_from = lane.recover_from + 1;
  }
}

void Agent::State::recovered(LaneState& lane, const Fragment& fragment) {
  if (fragment.repeated) {
    lane.congestion.lost();
    recover_further(lane, repeats_per_answer);
  }
  if (!fragment.repeated || !before(lane.recover_from, lane.recover_end)) lane.recovering = false;
}

void Agent::State::repeat_overtaken(Instant now, LaneState& lane) {
  if (distance(lane.base, lane.settled_end) <= overtaken_by || now < lane.next_scan) return;
  const Duration patience =
      rtt.smoothed() == Duration(0) ? rtt.rto(0) : rtt.smoothed() * overtaken_round_trips;
  lane.next_scan = now + patience / (overtaken_round_trips * scans_per_round_trip);
  const Seq end = lane.settled_end - static_cast<std::uint32_t>(overtaken_by);
  for (Seq seq = lane.base; before(seq, end); seq = seq + 1) {
    const Fragment& fragment = lane.at(seq);
    if (fragment.state == Fragment::State::waiting && now - fragment.sent_at >= patience) {
      lane.congestion.lost();
      queue_repeat(lane, seq);
    }
  }
}

}  // namespace cais::agent
