// How the agent goes on in another epoch (P15, P17), and what it keeps for that (P4): the records
// of the last 2W fragments of each lane, and copies of what they would contribute again once the
// memory of their op has gone back to the caller.
#include <algorithm>
#include <string>

#include "core/agent/state.hpp"

namespace cais::agent {
namespace {

Error refused(std::string what) { return {ErrorCode::invalid_argument, std::move(what)}; }

}  // namespace

bool contributes_sum(const nir::Plan& plan, Rank self, const Fragment& fragment) {
  return fragment.applied && plan.combine == nir::Combine::reduce &&
         plan.receives_payload(self, plan.extent(fragment.index).unit);
}

const std::byte* contributed_from(const Submit& submit, Rank self, const Fragment& fragment) {
  const nir::Extent extent = submit.plan.extent(fragment.index);
  return contributes_sum(submit.plan, self, fragment) ? destination(submit, Rank(0), extent)
                                                      : source(submit, extent);
}

Seq first_unsettled(const LaneState& lane) {
  Seq seq = lane.base;
  while (seq != lane.recorded_end() && lane.at(seq).applied) seq = seq + 1;
  return seq;
}

Seq Agent::first_unsettled(Lane lane) const {
  return agent::first_unsettled(state_->lanes[lane.value]);
}

Result<void> Agent::resume(Epoch epoch, std::span<const Seq> from) {
  State& state = *state_;
  if (!state.fenced) return refused("an epoch is fenced before the next one begins");
  if (epoch <= state.config.epoch) {
    return refused("epoch " + std::to_string(epoch.value) + " is not newer than " +
                   std::to_string(state.config.epoch.value));
  }
  if (from.size() != state.lanes.size()) {
    return refused("the session has " + std::to_string(state.lanes.size()) + " lanes, not " +
                   std::to_string(from.size()));
  }
  for (const LaneState& lane : state.lanes) {
    const Seq seq = from[lane.lane.value];
    const Seq unsettled = agent::first_unsettled(lane);
    const std::uint32_t kept = state.kept_before(lane);
    const std::int32_t again = distance(seq, unsettled);
    if (again >= 0 && static_cast<std::uint32_t>(again) <= kept) continue;
    return refused("lane " + std::to_string(lane.lane.value) + " cannot begin at seq " +
                   std::to_string(seq.value) + ": " + std::to_string(kept) +
                   " fragments are kept before seq " + std::to_string(unsettled.value));
  }
  state.config.epoch = epoch;
  state.config.keys = state.config.keys.at(epoch);
  state.fenced = state.told_no_session = false;
  for (LaneState& lane : state.lanes) state.rewind(lane, from[lane.lane.value]);
  return {};
}

/// How many fragments before the first unsettled one may be asked for again.
std::uint32_t Agent::State::kept_before(const LaneState& lane) const {
  if (!config.retains) return 0;
  const Seq first = agent::first_unsettled(lane);
  const auto beyond = static_cast<std::uint64_t>(distance(first, lane.recorded_end()));
  const std::uint64_t records = std::min<std::uint64_t>(lane.recorded, lane.window.size());
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(records - beyond, config.window_fragments));
}

/// Round-trip times stay: the way is as long as it was, until answers say otherwise.
void Agent::State::rewind(LaneState& lane, Seq from) {
  for (Seq seq = from; seq != lane.recorded_end(); seq = seq + 1) {
    Fragment& fragment = lane.at(seq);
    fragment.state = Fragment::State::unsent;
    fragment.due = Fragment::Due::nothing;
    fragment.repeated = fragment.arrived = fragment.finished = fragment.lost = false;
    fragment.sent_at = fragment.spoken_of_at = Instant();
  }
  lane.base = lane.next = lane.settled_end = lane.recover_from = lane.recover_end = from;
  lane.position = LanePosition(from);
  lane.waiting = lane.packets_on_their_way = 0;
  lane.repeats.clear();
  lane.clocked = false;
  lane.held_up_by = 0;
  lane.deadline = never;
  lane.backoff = 0;
  lane.next_scan = Instant::min();
}

/// Every fragment of the op is settled.
void Agent::State::finish(OpNumber number) {
  if (config.retains) keep(number);
  events.push_back(Done{op(number).submit.op});
}

/// P4: the last W fragments before the first unsettled one may be asked for, and those behind it.
void Agent::State::keep(OpNumber number) {
  Op& of = op(number);
  const nir::Plan& plan = of.submit.plan;
  if (!plan.contributes_payload(config.rank)) return;
  for (LaneState& lane : lanes) {
    const std::int64_t needed = distance(lane.base - config.window_fragments, lane.recorded_end());
    const std::int64_t records =
        static_cast<std::int64_t>(std::min<std::uint64_t>(lane.recorded, lane.window.size()));
    Seq seq = lane.recorded_end();
    for (std::int64_t left = std::min(needed, records); left > 0; --left) {
      seq = seq - 1;
      Fragment& fragment = lane.at(seq);
      if (fragment.op < number) break;
      if (fragment.op != number) continue;
      const std::byte* const from = contributed_from(of.submit, config.rank, fragment);
      fragment.kept_at = of.kept.size();
      of.kept.insert(of.kept.end(), from, from + plan.extent(fragment.index).bytes);
    }
  }
}

void Agent::State::forget_ops() {
  while (ops_first < ops_done && (!config.retains || ops.front().recorded == 0)) {
    ops.pop_front();
    ++ops_first;
  }
}

}  // namespace cais::agent
