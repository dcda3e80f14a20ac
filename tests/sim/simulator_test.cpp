// The simulator itself: one seed is one run (I9), a network without faults needs no repairs, and
// what can be set can be set wrongly.
#include <gtest/gtest.h>

#include <sstream>

#include "sim/run.hpp"

namespace cais::sim {
namespace {

Scenario without_faults(std::uint64_t seed) {
  Scenario scenario = scenario_of(seed);
  scenario.safety_ms = 0;
  scenario.jitter_us = 0;
  scenario.mismatch = 0;
  return scenario;
}

std::uint64_t reached(const Report& report, Probe probe) {
  return report.probes[static_cast<std::size_t>(probe)];
}

TEST(Simulator, OneSeedIsOneRun) {
  for (const std::uint64_t seed : {3u, 17u, 40u}) {
    EXPECT_EQ(run(scenario_of(seed)).digest, run(scenario_of(seed)).digest);
  }
  EXPECT_NE(run(scenario_of(3)).digest, run(scenario_of(4)).digest);
}

TEST(Simulator, ATraceChangesNothing) {
  std::size_t lines = 0;
  const Outcome traced = run(scenario_of(5), [&](const std::string&) { ++lines; });
  EXPECT_EQ(traced.digest, run(scenario_of(5)).digest);
  EXPECT_GT(lines, 100u);
}

/// A rank gets nothing before it has a place for it, and nothing twice.
TEST(Simulator, NothingIsRefusedOnAPerfectNetwork) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Outcome outcome = run(without_faults(seed));
    EXPECT_EQ(outcome.failure, "") << "seed " << seed;
    EXPECT_EQ(reached(outcome.report, Probe::nak_sent), 0u) << "seed " << seed;
    EXPECT_EQ(reached(outcome.report, Probe::stale_at_switch), 0u) << "seed " << seed;
    EXPECT_EQ(reached(outcome.report, Probe::damage_at_switch), 0u) << "seed " << seed;
  }
}

TEST(Simulator, KnobsAreSetByName) {
  Scenario scenario;
  EXPECT_TRUE(set(scenario, "ranks=7").ok());
  EXPECT_EQ(scenario.ranks, 7u);
  for (const char* wrong : {"ranks", "ranks=", "ranks=0", "ranks=65", "ranks=x", "ranks=7 ",
                            "window=3", "payload=17", "speed=1", "", "="}) {
    const Result<void> refused = set(scenario, wrong);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_NE(refused.error().message.find(wrong), std::string::npos);
  }
  EXPECT_EQ(scenario.ranks, 7u);
}

}  // namespace
}  // namespace cais::sim
