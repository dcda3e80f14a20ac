#include "sim/check/explore.hpp"

namespace cais::sim {
namespace {

std::string what_is_in(const SmallWorld& world) {
  std::string what =
      std::to_string(world.ranks) + " ranks, window " + std::to_string(world.window) + ":";
  for (const SmallOp& op : world.ops) {
    what += " " + std::string(cais::to_string(op.kind)) + " of " + std::to_string(op.fragments);
  }
  if (world.mismatch) what += "; the last rank calls another last one";
  return what;
}

}  // namespace

Exploration explore(const SmallWorld& world, std::uint64_t states_max, std::uint64_t fair_every) {
  Model model(world);
  return Walk<Model>(model, fair_every).run(states_max);
}

Exploration explore(const ControlWorld& world, std::uint64_t states_max, std::uint64_t fair_every) {
  ControlModel model(world);
  return Walk<ControlModel>(model, fair_every).run(states_max);
}

std::vector<NamedWorld> all_worlds() {
  std::vector<NamedWorld> worlds;
  for (const SmallWorld& world : small_worlds()) {
    worlds.push_back({world.name, what_is_in(world), [&world](auto states_max, auto fair_every) {
                        return explore(world, states_max, fair_every);
                      }});
  }
  for (const ControlWorld& world : control_worlds()) {
    worlds.push_back({world.name, world.what, [&world](auto states_max, auto fair_every) {
                        return explore(world, states_max, fair_every);
                      }});
  }
  return worlds;
}

}  // namespace cais::sim
