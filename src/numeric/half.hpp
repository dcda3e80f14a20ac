// numeric/half.hpp — the 16-bit float formats in plain arithmetic: float16 (IEEE 754 binary16) and
// bfloat16 (the upper half of binary32). The truth that the SIMD conversions are tested against.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace cais::numeric {

/// A binary format of 16 bits: one sign bit, then the exponent, then the fraction.
template <int fraction_bits, int exponent_min>
struct HalfFormat {
  static constexpr std::uint16_t infinity =
      static_cast<std::uint16_t>(0x7fff >> fraction_bits << fraction_bits);

  /// The exact value; every number of the format is a float.
  static float decode(std::uint16_t bits) {
    const int magnitude = bits & 0x7fff;
    float value = std::numeric_limits<float>::quiet_NaN();
    if (magnitude < infinity) {
      const int exponent = std::max(magnitude >> fraction_bits, 1);  // 0 and 1: the same spacing
      const int steps = magnitude - ((exponent - 1) << fraction_bits);
      value = std::ldexp(static_cast<float>(steps), exponent - 1 + exponent_min - fraction_bits);
    } else if (magnitude == infinity) {
      value = std::numeric_limits<float>::infinity();
    }
    return (bits & 0x8000) != 0 ? -value : value;
  }

  /// The nearest number of the format, ties to even; beyond the largest one, infinity.
  static std::uint16_t encode(float value) {
    const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    std::uint16_t magnitude = infinity;
    if (std::isnan(value)) {
      magnitude |= 1 << (fraction_bits - 1);
    } else if (std::isfinite(value) && value != 0) {
      // In units of the spacing around `value`; a carry into the next exponent comes out right,
      // because the numbers of the format are numbered in the order of their size.
      const int exponent = std::max(std::ilogb(value), exponent_min);
      const double steps = std::ldexp(std::fabs(double{value}), fraction_bits - exponent);
      const double number = std::nearbyint(steps) + ((exponent - exponent_min) << fraction_bits);
      magnitude = static_cast<std::uint16_t>(std::min(number, double{infinity}));
    } else if (value == 0) {
      magnitude = 0;
    }
    return sign | magnitude;
  }
};

using Float16 = HalfFormat<10, -14>;
using BFloat16 = HalfFormat<7, -126>;

}  // namespace cais::numeric
