// cais_perf/measure.hpp — times a workload over the sizes that were asked for.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "cais/cais.h"
#include "options.hpp"

namespace cais::perf {

/// Of one size, in or out of place. Microseconds of the slowest rank.
struct Timing {
  double mean_us;
  std::vector<double> sorted_us;  // one per iteration, the least first
  std::size_t wrong;              // elements, over all ranks

  /// The time that the share `p` of the iterations did not exceed.
  double percentile_us(double p) const;
};

struct Measurement {
  std::size_t bytes_asked;
  std::size_t bytes;  // of the tensor: whole elements, the same number for each rank
  std::size_t count;  // elements of the tensor
  Timing out_of_place;
  std::optional<Timing> in_place;  // of the table, where it exists
};

/// All sizes in order; `each` sees each result as it comes. Throws Failure.
std::vector<Measurement> measure(cais_comm* comm, const Options& options,
                                 const std::function<void(const Measurement&)>& each);

}  // namespace cais::perf
