// The second epoch of a small world (P15, P17): it has one switch, which may lose all that it has.
#include <algorithm>

#include "sim/check/model.hpp"

namespace cais::sim {

/// What a change of the epoch that has begun needs next.
bool Model::changes_epoch(const State& state, Action& next) const {
  const bool fenced = std::find(state.phases.begin(), state.phases.end(), State::Phase::fenced) !=
                      state.phases.end();
  if (!fenced && !state.crashed) return false;
  std::vector<Action> all;
  actions(state, all);
  for (const Action& action : all) {
    if (action.kind < Action::Kind::fence) continue;
    next = action;
    return true;
  }
  return false;
}

void Model::crash(State& state) {
  state.switches[tree_.root()] = switching::Switch();
  state.crashed = true;
}

/// Where the last of the ranks stands.
void Model::place(State& state) {
  state.from = state.agents[0].first_unsettled(Lane(0));
  for (const agent::Agent& agent : state.agents) {
    const Seq of_rank = agent.first_unsettled(Lane(0));
    if (before(of_rank, state.from)) state.from = of_rank;
  }
  switching::Switch& machine = state.switches[tree_.root()];
  if (state.crashed) open_switch(machine, tree_.root());
  auto begun = machine.fence(session, second_epoch);
  if (begun) begun = machine.resume(session, second_epoch, 1, {&state.from, 1});
  if (!begun) return state.oracle.complain("P15: " + begun.error().message);
  state.placed = true;
  state.oracle.begins(Lane(0), state.from);
}

}  // namespace cais::sim
