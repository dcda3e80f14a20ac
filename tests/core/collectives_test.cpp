// Every collective, type and odd size over a network that loses, doubles, reorders and delays:
// the bits are those of the reference (I1), nothing is left behind (I5), every packet is accounted
// for (I8), and once the faults stop, the end is near (I7).
#include <gtest/gtest.h>

#include <numeric>
#include <optional>

#include "tests/core/simulation.hpp"
#include "tests/core/workload.hpp"

namespace cais::simulation {
namespace {

Setup random_setup(std::uint64_t seed) {
  Rng rng(seed);
  Setup setup;
  setup.seed = rng.next();
  setup.ranks = static_cast<std::uint16_t>(1 + rng.below(8));
  setup.lanes = static_cast<std::uint8_t>(1 + rng.below(4));
  setup.switches = static_cast<std::uint8_t>(1 + rng.below(setup.lanes));
  setup.sessions = static_cast<std::uint16_t>(1 + rng.below(2));
  setup.window_fragments = 1u << rng.below(7);
  setup.payload_bytes_max = static_cast<std::uint32_t>(16 * (1 + rng.below(32)));
  setup.first_seq = Seq(rng.chance(0.5) ? static_cast<std::uint32_t>(-rng.below(100)) : 0u);
  static constexpr double rates[] = {0, 0.001, 0.02, 0.2};
  setup.faults.loss = rates[rng.below(4)];
  setup.faults.duplication = rates[rng.below(4)];
  setup.faults.delay_max =
      setup.faults.delay_min + std::chrono::microseconds(rng.chance(0.3) ? 0 : rng.below(500));
  return setup;
}

void expect_accounted(Simulation& simulation, const Setup& setup) {
  for (std::size_t i = 0; i < setup.switches; ++i) {
    const switching::Counters& counters = simulation.switch_at(i).counters();
    EXPECT_EQ(counters.received, std::accumulate(std::begin(counters.dropped),
                                                 std::end(counters.dropped), counters.accepted));
    EXPECT_EQ(counters.dropped[static_cast<std::size_t>(switching::Drop::violation)], 0u);
    EXPECT_EQ(counters.dropped[static_cast<std::size_t>(switching::Drop::wrong_place)], 0u);
    EXPECT_EQ(counters.dropped[static_cast<std::size_t>(switching::Drop::bad_length)], 0u);
    EXPECT_EQ(counters.transmits_lost, 0u);
    EXPECT_EQ(simulation.switch_at(i).slots_in_use(), 0u);
  }
  for (std::uint16_t session = 0; session < setup.sessions; ++session) {
    for (std::uint16_t rank = 0; rank < setup.ranks; ++rank) {
      const agent::Counters& counters = simulation.agent(session, rank).counters();
      EXPECT_EQ(counters.received, counters.accepted + counters.dropped_malformed +
                                       counters.dropped_tag + counters.dropped_foreign +
                                       counters.dropped_stale);
      EXPECT_EQ(counters.dropped_malformed + counters.dropped_tag + counters.dropped_foreign, 0u);
    }
  }
}

struct Counted {
  agent::Counters agents;  // of all
  std::uint64_t trace;
};

Counted run_seed(std::uint64_t seed, const Setup& setup) {
  Simulation simulation(setup);
  Rng rng(seed ^ 0xabcdef);
  std::vector<std::vector<Job>> jobs(setup.sessions);
  const std::uint64_t ops = 1 + rng.below(6);
  for (std::uint16_t session = 0; session < setup.sessions; ++session) {
    for (std::uint64_t op = 0; op < ops; ++op) {
      jobs[session].push_back(make_job(rng, random_spec(rng, setup, 3000), op));
      simulation.define(session, jobs[session].back().descriptor);
    }
  }
  for (std::uint16_t session = 0; session < setup.sessions; ++session) {
    for (std::uint16_t rank = 0; rank < setup.ranks; ++rank) {
      for (const Job& job : jobs[session]) simulation.submit(session, rank, job.submits[rank]);
    }
  }
  EXPECT_TRUE(simulation.run(std::chrono::seconds(600))) << "seed " << seed;
  for (std::uint16_t session = 0; session < setup.sessions; ++session) {
    for (const Job& job : jobs[session]) {
      EXPECT_EQ(job.wrong_rank(), -1) << "seed " << seed << ": " << wire::to_string(job.descriptor);
    }
    for (std::uint16_t rank = 0; rank < setup.ranks; ++rank) {
      const auto& events = simulation.events(session, rank);
      EXPECT_EQ(events.size(), ops) << "seed " << seed;
      for (std::size_t i = 0; i < events.size(); ++i) {
        EXPECT_EQ(std::get<agent::Done>(events[i]).op, i) << "seed " << seed;
      }
    }
  }
  expect_accounted(simulation, setup);
  Counted counted{{}, simulation.trace()};
  for (std::uint16_t session = 0; session < setup.sessions; ++session) {
    for (std::uint16_t rank = 0; rank < setup.ranks; ++rank) {
      const agent::Counters& counters = simulation.agent(session, rank).counters();
      counted.agents.repeated += counters.repeated;
      counted.agents.dropped_stale += counters.dropped_stale;
      counted.agents.sent += counters.sent;
    }
  }
  return counted;
}

Counted run_seed(std::uint64_t seed) { return run_seed(seed, random_setup(seed)); }

TEST(Collectives, AreExactUnderFaults) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    run_seed(seed);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

/// A rank gets nothing before it has a place for it, and nothing twice.
TEST(Collectives, NothingIsRepeatedOnAPerfectNetwork) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    simulation::Setup setup = random_setup(seed);
    setup.faults = Faults{};
    const Counted counted = run_seed(seed, setup);
    EXPECT_EQ(counted.agents.repeated, 0u) << "seed " << seed;
    EXPECT_EQ(counted.agents.dropped_stale, 0u) << "seed " << seed;
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(Collectives, OneSeedIsOneTrace) {
  for (const std::uint64_t seed : {3u, 17u, 40u})
    EXPECT_EQ(run_seed(seed).trace, run_seed(seed).trace);
  EXPECT_NE(run_seed(3).trace, run_seed(4).trace);
}

}  // namespace
}  // namespace cais::simulation
