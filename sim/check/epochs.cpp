// The second epoch of a small world (P15, P17).
#include <algorithm>

#include "sim/check/model.hpp"

namespace cais::sim {

/// What a change of the epoch that has begun needs next.
bool Model::changes_epoch(const State& state, Action& next) const {
  const bool fenced = std::find(state.phases.begin(), state.phases.end(), State::Phase::fenced) !=
                      state.phases.end();
  if (!fenced && !any_placed(state) && !state.crashed) return false;
  std::vector<Action> all;
  actions(state, all);
  for (const Action& action : all) {
    if (action.kind < Action::Kind::fence) continue;
    next = action;
    return true;
  }
  return false;
}

bool Model::any_placed(const State& state) {
  return std::find(state.placed.begin(), state.placed.end(), true) != state.placed.end();
}

/// Where the last of the ranks stands: they are fenced, and stay there. Before the first switch
/// begins, all that have the session are.
void Model::place(State& state, std::size_t node) {
  state.from = state.agents[0].first_unsettled(Lane(0));
  for (const agent::Agent& agent : state.agents) {
    const Seq of_rank = agent.first_unsettled(Lane(0));
    if (before(of_rank, state.from)) state.from = of_rank;
  }
  for (std::size_t each = 0; !any_placed(state) && each < state.switches.size(); ++each) {
    if (state.crashed == each) continue;
    if (auto fenced = state.switches[each].fence(session, second_epoch); !fenced) {
      return state.oracle.complain("P15: " + fenced.error().message);
    }
  }
  switching::Switch& machine = state.switches[node];
  if (state.crashed == node) open_switch(machine, node);
  auto begun = machine.fence(session, second_epoch);
  if (begun) begun = machine.resume(session, second_epoch, 1, {&state.from, 1});
  if (!begun) return state.oracle.complain("P15: " + begun.error().message);
  state.placed[node] = true;
  state.oracle.begins(node, Lane(0), state.from);
}

}  // namespace cais::sim
