// nir/ir.hpp — the tensor-aware IR: one collective as a tensor op with an explicit schedule of
// stages, before any target is chosen. The schedule alone says what is computed; nothing below asks
// which collective it came from.
//
// A schedule runs once for each unit. It loads the unit of some ranks, makes one value of them, and
// scatters that value. All-reduce of bfloat16 over 4 ranks, averaged:
//
//   load {0..3}  accumulate sum in float32  divide by 4  round to bfloat16  scatter to {0..3}
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "base/check.hpp"
#include "base/types.hpp"
#include "wire/descriptor.hpp"

namespace cais::nir {

/// A set of ranks of the group.
struct RankSet {
  std::uint64_t bits = 0;
  static constexpr RankSet all(std::uint16_t ranks) {
    return {ranks >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << ranks) - 1};
  }
  static constexpr RankSet only(Rank rank) { return {std::uint64_t{1} << rank.value}; }
  constexpr bool contains(Rank rank) const { return (bits >> rank.value & 1) != 0; }
  constexpr int count() const { return std::popcount(bits); }
  /// The least rank of a set that is not empty.
  constexpr Rank first() const { return Rank(static_cast<std::uint16_t>(std::countr_zero(bits))); }
  constexpr bool operator==(const RankSet&) const = default;
};
static_assert(ranks_max <= 64, "a set of ranks is one word");

/// Shape and element type of a tensor that one rank holds.
struct TensorType {
  static constexpr std::size_t dims_max = wire::dims_max + 1;  // units are stacked in front
  DType dtype = DType::float32;
  std::uint8_t dims = 0;
  std::array<std::uint64_t, dims_max> shape{};  // elements

  constexpr std::uint64_t elements() const {
    std::uint64_t product = 1;
    for (std::size_t dim = 0; dim < dims; ++dim) product *= shape[dim];
    return product;
  }
  constexpr bool operator==(const TensorType&) const = default;
};

/// Takes the unit of each of these ranks.
struct Load {
  RankSet from;
};
/// Combines the loaded units element by element, in rank order, in the type `in`.
struct Accumulate {
  ReduceOp op;  // never none or avg
  DType in;
};
/// Stands the loaded units side by side, in rank order.
struct Concatenate {};
/// Waits for the loaded units, which are empty: only that all ranks came counts.
struct Join {};
/// Divides what was accumulated; integers toward zero.
struct Divide {
  std::uint32_t by;
};
/// Rounds what was accumulated to the type of the output, once.
struct Round {
  DType to;
};
/// Hands the value out: to every rank of `to`, or, by unit, that of unit u to rank u of `to` alone.
struct Scatter {
  RankSet to;
  bool by_unit;
};
using Stage = std::variant<Load, Accumulate, Concatenate, Join, Divide, Round, Scatter>;
const char* name_of(const Stage& stage);

/// The stages in the order in which they run.
class Schedule {
 public:
  static constexpr std::size_t stages_max = 8;
  void append(const Stage& stage) {
    CAIS_CHECK(count_ < stages_max);
    stages_[count_++] = stage;
  }
  std::span<const Stage> stages() const { return {stages_.data(), count_}; }

 private:
  std::array<Stage, stages_max> stages_{};
  std::size_t count_ = 0;
};

/// How the op's bytes are cut; what it computes does not depend on it.
struct Tiling {
  std::uint32_t fragment_bytes = wire::fragment_bytes_step;
  std::uint32_t chunk_bytes = wire::chunk_bytes_min;
  std::uint8_t lanes = 1;
};

struct TensorOp {
  OpKind kind = OpKind::barrier;  // its name, for people
  std::uint16_t ranks = 1;
  std::uint32_t units = 1;          // times that the schedule runs
  std::uint64_t unit_elements = 0;  // of one rank's unit
  TensorType input;                 // units stacked in front where there are several
  TensorType output;                // of a rank that gets one; concatenated units stacked in front
  std::int8_t shard_dim = -1;       // dim of the global tensor that units are shards of, −1: none
  std::uint8_t guard_bits = 0;      // kept free above the values of an integer target
  Schedule schedule;
  Tiling tiling;
};

}  // namespace cais::nir
