// base/rng.hpp — a seeded random generator (SplitMix64, Steele et al., OOPSLA 2014): the same seed
// gives the same numbers on every machine.
#pragma once

#include <cstdint>

namespace cais {

class Rng {
 public:
  explicit constexpr Rng(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// A number in [0, bound); bound > 0.
  constexpr std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  /// True with probability `p`.
  constexpr bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1p-53 < p; }

 private:
  std::uint64_t state_;
};

}  // namespace cais
