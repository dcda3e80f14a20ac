// cais-sim — the agents and switches that ship, in a simulated network with faults, one run for
// each seed. docs/testing.md says what is checked.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/commit.hpp"
#include "sim/run.hpp"

namespace {

using namespace cais;

constexpr std::size_t tail_lines = 60;

struct Flags {
  std::uint64_t first = 1;
  std::uint64_t seeds = 2000;
  std::uint64_t seed = 0;
  double hours = 0;
  bool all_probes = false;
  std::vector<std::string> changes;
  std::string file;
};

int fail(const Error& error) {
  std::fprintf(stderr, "cais-sim: %s\n", error.message.c_str());
  return 2;
}

Result<sim::Scenario> scenario_of(std::uint64_t seed, const Flags& flags) {
  sim::Scenario scenario = sim::scenario_of(seed);
  for (const std::string& change : flags.changes) {
    if (auto done = sim::set(scenario, change); !done) return done.error();
  }
  return scenario;
}

/// Says how a run failed, and how to see it again.
void tell_failure(const sim::Scenario& scenario, const std::string& failure,
                  const std::vector<std::string>& changes) {
  std::string again = std::to_string(scenario.seed);
  for (const std::string& change : changes) again += " --set " + change;
  std::printf(
      "%s\nSEED %llu FAILED: %s\n%s\nat commit %s\nagain: cais-sim replay %s\n"
      "smaller: cais-sim minimise %s\n",
      sim::tail_of(scenario, tail_lines).c_str(), static_cast<unsigned long long>(scenario.seed),
      failure.c_str(), sim::to_string(scenario).c_str(), sim::commit(), again.c_str(),
      again.c_str());
}

int check_probes(const sim::Report& report) {
  int missed = 0;
  for (std::size_t i = 0; i < report.probes.size(); ++i) {
    if (report.probes[i] != 0) continue;
    std::printf("never reached: %s\n", sim::to_string(static_cast<sim::Probe>(i)));
    missed = 1;
  }
  return missed;
}

int run(const Flags& flags) {
  sim::Report total;
  const auto enough = [&](std::uint64_t done) {
    const double hours = std::chrono::duration<double, std::ratio<3600>>(total.simulated).count();
    return done >= flags.seeds && hours >= flags.hours;
  };
  for (std::uint64_t done = 0; !enough(done); ++done) {
    const std::uint64_t seed = flags.first + done;
    const auto scenario = scenario_of(seed, flags);
    if (!scenario) return fail(scenario.error());
    const sim::Outcome outcome = sim::run(*scenario);
    total.add(outcome.report);
    if (outcome.failure.empty()) continue;
    tell_failure(*scenario, outcome.failure, flags.changes);
    return 1;
  }
  std::printf("%llu seeds from %llu on, none failed\n%s",
              static_cast<unsigned long long>(total.runs),
              static_cast<unsigned long long>(flags.first), sim::to_string(total).c_str());
  return flags.all_probes ? check_probes(total) : 0;
}

int replay(const Flags& flags) {
  const auto scenario = scenario_of(flags.seed, flags);
  if (!scenario) return fail(scenario.error());
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(flags.seed),
              sim::to_string(*scenario).c_str());
  const sim::Outcome outcome =
      sim::run(*scenario, [](const std::string& line) { std::puts(line.c_str()); });
  std::printf("%s\n%s", outcome.failure.empty() ? "nothing failed" : outcome.failure.c_str(),
              sim::to_string(outcome.report).c_str());
  return outcome.failure.empty() ? 0 : 1;
}

/// A file of lines "SEED NAME=NUMBER…"; # begins a comment.
int found(const Flags& flags) {
  std::ifstream file(flags.file);
  if (!file) {
    return fail({ErrorCode::invalid_argument, flags.file + " cannot be read; is the path right?"});
  }
  int runs = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    Flags one;
    if (!(words >> one.seed)) continue;
    for (std::string word; words >> word;) one.changes.push_back(word);
    const auto scenario = scenario_of(one.seed, one);
    if (!scenario) return fail(scenario.error());
    ++runs;
    const sim::Outcome outcome = sim::run(*scenario);
    if (outcome.failure.empty()) continue;
    tell_failure(*scenario, outcome.failure, one.changes);
    return 1;
  }
  std::printf("%d runs, none failed\n", runs);
  return runs > 0 ? 0 : fail({ErrorCode::invalid_argument, flags.file + " holds no run"});
}

int minimise(const Flags& flags) {
  const auto scenario = scenario_of(flags.seed, flags);
  if (!scenario) return fail(scenario.error());
  const sim::Outcome outcome = sim::run(*scenario);
  if (outcome.failure.empty()) {
    std::printf("seed %llu does not fail: nothing to make smaller\n",
                static_cast<unsigned long long>(flags.seed));
    return 2;
  }
  const sim::Scenario smallest = sim::minimise(*scenario, std::cout);
  std::string changes;
  const auto change = [&](const std::string& assignment) {
    changes += " --set ";
    changes += assignment;
  };
  for (const std::string& given : flags.changes) change(given);
  for (const sim::Knob& knob : sim::knobs()) {
    if (smallest.*knob.value == (*scenario).*knob.value) continue;
    change(knob.name + ("=" + std::to_string(smallest.*knob.value)));
  }
  std::printf("%s\n%s\nagain: cais-sim replay %llu%s\n", sim::tail_of(smallest, tail_lines).c_str(),
              sim::to_string(smallest).c_str(), static_cast<unsigned long long>(flags.seed),
              changes.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Runs CAIS's agents and switches in a simulated network that loses, doubles, delays, "
      "reorders and damages packets, and holds the protocol's invariants after every step."};
  app.require_subcommand(1);
  app.set_version_flag("--version", sim::commit());
  Flags flags;
  const auto changes = [&](CLI::App* command) {
    command->add_option("--set", flags.changes,
                        "NAME=NUMBER: changes one thing of the run, as in --set loss=0");
  };
  const auto seed = [&](CLI::App* command) {
    command->add_option("SEED", flags.seed, "The run's seed, as a failure prints it")->required();
    changes(command);
  };
  CLI::App* const runs = app.add_subcommand("run", "One run for each seed; stops at a failure");
  runs->add_option("--seeds", flags.seeds, "How many")->capture_default_str();
  runs->add_option("--first", flags.first, "The first seed")->capture_default_str();
  runs->add_option("--hours", flags.hours, "Goes on until this much time is simulated")
      ->capture_default_str();
  runs->add_flag("--all-probes", flags.all_probes, "Fails when a rare path was never reached");
  changes(runs);
  CLI::App* const again = app.add_subcommand("replay", "One seed, with every packet");
  seed(again);
  CLI::App* const smaller =
      app.add_subcommand("minimise", "Makes a run that fails as small as it can");
  seed(smaller);
  CLI::App* const known = app.add_subcommand("found", "Runs that found a bug once, from a file");
  known->add_option("FILE", flags.file, "Lines of SEED NAME=NUMBER…; # begins a comment")
      ->required();
  CLI11_PARSE(app, argc, argv);
  if (known->parsed()) return found(flags);
  if (runs->parsed()) return run(flags);
  return again->parsed() ? replay(flags) : minimise(flags);
}
