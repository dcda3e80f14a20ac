// io/clock.hpp — the one place where the monotonic clock is read.
#pragma once

#include <time.h>

#include "base/time.hpp"

namespace cais::io {

inline Instant now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return Instant(Duration(std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec));
}

}  // namespace cais::io
