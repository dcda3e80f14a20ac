// cais_perf/data.hpp — what the ranks contribute and what must come out, bit by bit.
//
// Element i of rank r is (7 i + 13 r + 31 g) mod 97, or of a product 1 + that mod 2: whole numbers,
// so that sums are exact in every type's accumulator. `g` is the generation: with the next one, a
// result made of old contributions shows. It repeats after 97 elements; a tensor is filled and
// checked from the table of these.
#pragma once

#include <cstddef>
#include <vector>

#include "base/types.hpp"

namespace cais::perf {

class Pattern {
 public:
  /// What `rank` contributes.
  static Pattern contribution(DType dtype, ReduceOp op, int rank, int generation);
  /// What all ranks' contributions reduce to. Halves are rounded once; integers wrap.
  static Pattern reduced(DType dtype, ReduceOp op, int ranks, int generation);

  /// Writes the elements [first, first + count) to `to`.
  void fill(void* to, std::size_t first, std::size_t count) const;
  /// How many of the elements at `from` are not [first, first + count).
  std::size_t wrong(const void* from, std::size_t first, std::size_t count) const;

 private:
  explicit Pattern(DType dtype);
  void put(std::size_t place, double value);
  void put(std::size_t place, std::uint64_t value);

  DType dtype_;
  std::vector<std::byte> table_;
};

}  // namespace cais::perf
