// cais-check — walks every interleaving of send, deliver, lose, double, reorder and time-out of
// small worlds, with the agents and the switch that ship. docs/testing.md says what is checked.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "sim/check/explore.hpp"
#include "sim/commit.hpp"

namespace {

using namespace cais;

struct Flags {
  std::vector<std::string> worlds;
  bool list = false;
  std::uint64_t states = 20'000;
  std::uint64_t fair_every = 8;
};

void list() {
  for (const sim::NamedWorld& world : sim::all_worlds()) {
    std::printf("%-28s %s\n", world.name.c_str(), world.what.c_str());
  }
}

Result<std::vector<sim::NamedWorld>> chosen(const Flags& flags) {
  std::vector<sim::NamedWorld> all = sim::all_worlds();
  if (flags.worlds.empty()) return all;
  std::vector<sim::NamedWorld> worlds;
  for (const std::string& name : flags.worlds) {
    const bool begins = name.ends_with('*');
    const std::string beginning = name.substr(0, name.size() - begins);
    const std::size_t before = worlds.size();
    for (const sim::NamedWorld& world : all) {
      if (begins ? world.name.starts_with(beginning) : world.name == name) worlds.push_back(world);
    }
    if (worlds.size() == before) {
      return Error{ErrorCode::invalid_argument,
                   "there is no world \"" + name + "\"; --list shows them"};
    }
  }
  return worlds;
}

int run(const Flags& flags) {
  const auto worlds = chosen(flags);
  if (!worlds) {
    std::fprintf(stderr, "cais-check: %s\n", worlds.error().message.c_str());
    return 2;
  }
  using Clock = std::chrono::steady_clock;
  const auto begun = Clock::now();
  std::uint64_t states = 0;
  std::size_t depth = 0;
  for (const sim::NamedWorld& world : *worlds) {
    const auto start = Clock::now();
    const sim::Exploration found = world.explore(flags.states, flags.fair_every);
    if (!found.failure.empty()) {
      for (const std::string& line : found.path) std::printf("  %s\n", line.c_str());
      std::printf("%s FAILED: %s\nat commit %s\n", world.name.c_str(), found.failure.c_str(),
                  sim::commit());
      return 1;
    }
    states += found.states;
    depth = std::max(depth, found.depth);
    std::printf("%-28s %s %9llu states %10llu steps depth %4zu timeouts %d %6.1f s\n",
                world.name.c_str(), found.complete ? "all    " : "bounded",
                static_cast<unsigned long long>(found.states),
                static_cast<unsigned long long>(found.steps), found.depth, found.timeouts,
                std::chrono::duration<double>(Clock::now() - start).count());
    std::fflush(stdout);
  }
  std::printf("%llu states, depth %zu, %.1f seconds, nothing failed\n",
              static_cast<unsigned long long>(states), depth,
              std::chrono::duration<double>(Clock::now() - begun).count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Walks every run of small worlds of CAIS's agents and switch: packets arrive in any "
      "order, any number of times or never, and timers run out at any time."};
  Flags flags;
  app.set_version_flag("--version", sim::commit());
  app.add_option("--world", flags.worlds,
                 "Only this one, or those that begin so: \"control-*\"; may be given again");
  app.add_flag("--list", flags.list, "Shows the worlds");
  app.add_option("--states", flags.states, "Stops a world after so many states")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--fair-every", flags.fair_every,
                 "Plays the run without faults from one state in so many on")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (flags.list) {
    list();
    return 0;
  }
  return run(flags);
}
