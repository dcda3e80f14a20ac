// sim/check/explore.hpp — the small worlds, and their walk.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/check/control_model.hpp"
#include "sim/check/model.hpp"
#include "sim/check/walk.hpp"

namespace cais::sim {

/// `states_max`: stops after so many. From one state in `fair_every` on, the run that has no more
/// faults is played to its end (I7).
Exploration explore(const SmallWorld& world, std::uint64_t states_max, std::uint64_t fair_every);
Exploration explore(const ControlWorld& world, std::uint64_t states_max, std::uint64_t fair_every);

/// A world of either sort, by its name.
struct NamedWorld {
  std::string name;
  std::string what;  // is in it
  std::function<Exploration(std::uint64_t states_max, std::uint64_t fair_every)> explore;
};
std::vector<NamedWorld> all_worlds();

}  // namespace cais::sim
