// base/round_up.hpp — sizes in whole steps.
#pragma once

#include <cstdint>

namespace cais {

/// The least multiple of `step` that is not below `value`; `step` > 0.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace cais
