// base/time.hpp — points in time and lengths of time, in nanoseconds. No clock: whoever drives a
// state machine says what time it is.
#pragma once

#include <chrono>
#include <cstdint>

namespace cais {

using Duration = std::chrono::duration<std::int64_t, std::nano>;

/// The tag of a monotonic clock that only the runtime can read.
struct MonotonicClock {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<MonotonicClock, Duration>;
  static constexpr bool is_steady = true;
};
using Instant = MonotonicClock::time_point;

/// "Never": the deadline of a machine that waits for nothing.
inline constexpr Instant never = Instant::max();

}  // namespace cais
