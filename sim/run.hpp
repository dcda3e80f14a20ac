// sim/run.hpp — runs of the simulator: many seeds, one seed again, and the smallest run that still
// fails.
#pragma once

#include <iosfwd>
#include <string>

#include "sim/report.hpp"
#include "sim/scenario.hpp"
#include "sim/world.hpp"

namespace cais::sim {

struct Outcome {
  std::string failure;  // empty: none
  std::uint64_t digest = 0;
  Report report;
};

Outcome run(const Scenario& scenario, Trace trace = {});

/// The last `lines` of what happens in a run.
std::string tail_of(const Scenario& scenario, std::size_t lines);

/// A scenario as small as can be found that fails for the same reason (the failure's first word, as
/// in "I1:"); says on `progress` what it tries.
Scenario minimise(const Scenario& scenario, std::ostream& progress);

}  // namespace cais::sim
