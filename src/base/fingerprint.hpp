// base/fingerprint.hpp — a walk over the logical state of a machine, folded into one number: two
// machines in the same state have the same number, and (but for one chance in 2^64) no two others.
// Model checkers know by it where they have been, tests that nothing was changed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "base/types.hpp"

namespace cais {

/// Ranks may be called by other names: when a protocol treats them alike, states that differ only
/// in who is who have the same number under the right names.
class Fingerprint {
 public:
  Fingerprint() = default;
  /// Rank r is called names[r], a permutation. The span must outlive the walk.
  explicit Fingerprint(std::span<const std::uint16_t> names) : names_(names) {}

  void number(std::uint64_t value) {
    std::uint64_t mixed = (state_ ^ value) + 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    state_ = mixed ^ (mixed >> 31);
  }
  void rank(Rank rank) { number(name_of(rank)); }
  /// A set of ranks: bit r for rank r.
  void ranks(std::uint64_t set) {
    if (names_.empty()) return number(set);
    std::uint64_t named = 0;
    for (; set != 0; set &= set - 1) {
      named |= std::uint64_t{1} << names_[static_cast<std::size_t>(std::countr_zero(set))];
    }
    number(named);
  }
  /// The rank of that name: what is kept by rank is walked in the order of names.
  Rank called(std::uint16_t name) const {
    if (names_.empty()) return Rank(name);
    const auto found = std::find(names_.begin(), names_.end(), name);
    return Rank(static_cast<std::uint16_t>(found - names_.begin()));
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint16_t name_of(Rank rank) const {
    return names_.empty() ? rank.value : names_[rank.value];
  }

  std::span<const std::uint16_t> names_;  // empty: as they are
  std::uint64_t state_ = 0;
};

}  // namespace cais
