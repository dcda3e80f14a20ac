// runtime/mixed/partial_sum.hpp — sums in two steps: what a partial is, and how it becomes a
// result.
#pragma once

#include <cstddef>

#include "base/types.hpp"

namespace cais::runtime::mixed {

/// Cheap to copy. Partials of halves are float32, so that they are rounded once, at the end; the
/// division of avg comes last, once.
struct PartialSum {
  ReduceOp op;        // what the caller asked for
  DType dtype;        // of the caller's tensor
  std::size_t ranks;  // that the result stands for

  DType partial() const { return is_half(dtype) ? DType::float32 : dtype; }
  ReduceOp partial_op() const { return op == ReduceOp::avg ? ReduceOp::sum : op; }
  bool widens() const { return partial() != dtype; }

  /// to[i] = from[i] as a partial; exact. Counts are of elements.
  void widen(const std::byte* from, std::byte* to, std::size_t count) const;
  /// to[i] = from[i] as a result. `from` and `to` may be the same memory when nothing widens.
  void finish(const std::byte* from, std::byte* to, std::size_t count) const;
};

}  // namespace cais::runtime::mixed
