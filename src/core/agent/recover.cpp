// How the agent gets through losses (P2): a timer for each lane's oldest fragment, and questions
// about what it finds missing or what later results have overtaken. The switch's answers tell what
// was lost, for packets of one lane seldom overtake each other: a nak our contribution, `waiting`
// or a done the payloads that the switch has and we have not.
#include <algorithm>

#include "core/agent/state.hpp"

namespace cais::agent {
namespace {

/// A machine that sleeps for a moment looks like a lost window. So a timeout asks about a few
/// fragments only (the idea of F-RTO, RFC 5682). Each of them calls forth two more questions once
/// it is settled, unless it was late because the switch waited for others.
constexpr std::uint32_t questions_per_timeout = 4;
constexpr std::uint32_t questions_per_answer = 2;

/// Later fragments that must be settled before one counts as overtaken.
constexpr std::int32_t overtaken_by = 3;
/// Round trips, in quarters, after which such a one is asked for.
constexpr int patience_quarters = 5;

}  // namespace

Duration patience_of(const LaneState& lane) {
  if (lane.rtt.smoothed() == Duration(0)) return lane.rtt.rto(0);
  return lane.rtt.smoothed() * patience_quarters / 4;
}

void Agent::State::queue_repeat(LaneState& lane, Seq seq, Fragment::Due due) {
  Fragment& fragment = lane.at(seq);
  if (fragment.due == Fragment::Due::nothing) lane.repeats.push_back(seq);
  fragment.due = due;
}

/// The switch says that something of the fragment was lost: our contribution, or what it sent.
void Agent::State::repeat_lost(LaneState& lane, Seq seq, Fragment::Due due) {
  congestion.lost();
  lane.at(seq).lost = true;
  queue_repeat(lane, seq, due);
}

/// A doubt is settled by asking: the question and its answer are small, so that it may come early,
/// in front of a slow link too. What the switch has finished has been sent: it is wanted again.
void Agent::State::ask(LaneState& lane, Seq seq) {
  const Fragment& fragment = lane.at(seq);
  if (fragment.due != Fragment::Due::nothing) return;
  queue_repeat(lane, seq, fragment.finished ? Fragment::Due::want : Fragment::Due::question);
}

void Agent::State::timeout(Instant now, LaneState& lane) {
  ++counters.timeouts;
  ++lane.backoff;
  lane.deadline = now + lane.rtt.rto(lane.backoff);
  lane.recover_from = lane.base;
  lane.recover_end = lane.next;
  recover_further(lane, questions_per_timeout);
}

/// Questions about the next fragments that were sent before the last timeout.
void Agent::State::recover_further(LaneState& lane, std::uint32_t count) {
  while (count > 0 && before(lane.recover_from, lane.recover_end)) {
    if (lane.at(lane.recover_from).state == Fragment::State::waiting) {
      ask(lane, lane.recover_from);
      --count;
    }
    lane.recover_from = lane.recover_from + 1;
  }
}

/// The fragment is settled.
void Agent::State::recover_after(LaneState& lane, const Fragment& fragment) {
  if (fragment.lost || (fragment.asked() && !fragment.arrived)) {
    recover_further(lane, questions_per_answer);
  }
}

void Agent::State::repeat_overtaken(Instant now, LaneState& lane) {
  if (distance(lane.base, lane.settled_end) <= overtaken_by || now < lane.next_scan) return;
  const Duration patience = patience_of(lane);
  lane.next_scan = now + patience / patience_quarters;
  const Seq end = lane.settled_end - static_cast<std::uint32_t>(overtaken_by);
  for (Seq seq = lane.base; before(seq, end); seq = seq + 1) {
    const Fragment& fragment = lane.at(seq);
    if (fragment.state == Fragment::State::waiting && now - fragment.spoken_of_at >= patience) {
      congestion.lost();
      ask(lane, seq);
    }
  }
}

}  // namespace cais::agent
