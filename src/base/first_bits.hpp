// base/first_bits.hpp — the set of the first so many ranks, lanes or the like, as a bitmap.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cais {

/// Bits 0 to count − 1 are set; `count` of at most 64.
constexpr std::uint64_t first_bits(std::size_t count) {
  return count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

}  // namespace cais
