// sim/check/explore.hpp — walks every run of a small world, depth first; a state that was seen is
// not walked again. Machines are copied, not replayed: a copy costs microseconds, a replay as many
// steps as the path has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/check/model.hpp"

namespace cais::sim {

struct Exploration {
  std::uint64_t states = 0;
  std::uint64_t steps = 0;  // taken, also to states that were seen before
  std::size_t depth = 0;
  bool complete = false;          // every state that can be reached was
  int timeouts = 0;               // of one rank, at most, until a run without faults was over
  std::string failure;            // empty: none
  std::vector<std::string> path;  // to the failure, with what it does not need left out
};

/// `states_max`: stops after so many. From one state in `fair_every` on, the run that has no more
/// faults is played to its end (I7).
Exploration explore(const SmallWorld& world, std::uint64_t states_max, std::uint64_t fair_every);

}  // namespace cais::sim
