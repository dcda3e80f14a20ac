// How the agent gets through losses (P2): a timer for each lane's oldest fragment, repeats of what
// later results have overtaken, and after a timeout as many repeats as the answers call forth.
#include <algorithm>

#include "core/agent/state.hpp"

namespace cais::agent {
namespace {

/// A machine that sleeps for a moment looks like a lost window. A timeout repeats a few fragments
/// only; each of them that is answered calls forth two more. An answer to a fragment that was not
/// repeated, or one that comes too soon to be the repeat's, says that nothing was lost but time
/// (the idea of F-RTO, RFC 5682).
constexpr std::uint32_t repeats_per_timeout = 4;
constexpr std::uint32_t repeats_per_answer = 2;

/// Later fragments that must be settled before one counts as overtaken.
constexpr std::int32_t overtaken_by = 3;
/// Round trips, in quarters, after which such a one is asked for.
constexpr int patience_quarters = 5;

}  // namespace

void Agent::State::queue_repeat(LaneState& lane, Seq seq, Fragment::Due due) {
  Fragment& fragment = lane.at(seq);
  if (fragment.due == Fragment::Due::nothing) lane.repeats.push_back(seq);
  fragment.due = due;
}

/// A doubt is settled by asking: the question is small, so that it may come early, and the answer
/// says whether it is our contribution that is missing.
void Agent::State::ask(LaneState& lane, Seq seq) {
  if (lane.at(seq).due == Fragment::Due::nothing) queue_repeat(lane, seq, Fragment::Due::want);
}

/// After a timeout the shortest way is taken: to ask first would take four packets that arrive
/// instead of two. What adds nothing is asked for all the same, for what is lacking may be much
/// more than our contribution.
void Agent::State::repeat_or_ask(LaneState& lane, Seq seq) {
  if (lane.at(seq).due != Fragment::Due::nothing) return;
  const bool adds = op(lane.at(seq).op).submit.plan.combine == nir::Combine::reduce;
  queue_repeat(lane, seq, adds ? Fragment::Due::contribution : Fragment::Due::want);
}

void Agent::State::timeout(Instant now, LaneState& lane) {
  ++counters.timeouts;
  ++lane.backoff;
  lane.deadline = now + lane.rtt.rto(lane.backoff);
  lane.recovering = true;
  lane.recover_from = lane.base;
  lane.recover_end = lane.next;
  recover_further(lane, repeats_per_timeout);
}

void Agent::State::recover_further(LaneState& lane, std::uint32_t count) {
  if (before(lane.recover_from, lane.base)) lane.recover_from = lane.base;
  while (count > 0 && before(lane.recover_from, lane.recover_end)) {
    if (lane.at(lane.recover_from).state == Fragment::State::waiting) {
      repeat_or_ask(lane, lane.recover_from);
      --count;
    }
    lane.recover_from = lane.recover_from + 1;
  }
}

void Agent::State::recovered(Instant now, LaneState& lane, const Fragment& fragment) {
  const bool answers_repeat =
      fragment.repeated && now - fragment.sent_at >= lane.rtt.smoothed() / 2;
  if (answers_repeat) {
    congestion.lost();
    recover_further(lane, repeats_per_answer);
  }
  if (!answers_repeat || !before(lane.recover_from, lane.recover_end)) lane.recovering = false;
}

void Agent::State::repeat_overtaken(Instant now, LaneState& lane) {
  if (distance(lane.base, lane.settled_end) <= overtaken_by || now < lane.next_scan) return;
  const Duration patience = lane.rtt.smoothed() == Duration(0)
                                ? lane.rtt.rto(0)
                                : lane.rtt.smoothed() * patience_quarters / 4;
  lane.next_scan = now + patience / patience_quarters;
  const Seq end = lane.settled_end - static_cast<std::uint32_t>(overtaken_by);
  for (Seq seq = lane.base; before(seq, end); seq = seq + 1) {
    const Fragment& fragment = lane.at(seq);
    if (fragment.state == Fragment::State::waiting && now - fragment.sent_at >= patience) {
      congestion.lost();
      ask(lane, seq);
    }
  }
}

}  // namespace cais::agent
