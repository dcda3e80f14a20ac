// numeric/kernels/loop-inl.hpp — the N-way loop: a block of a few vectors is accumulated in
// registers over all inputs, in rank order, and written to all outputs. Compiled once per
// instruction set.
//
// An op gives, for its lanes: `enter` (an input's lanes, made ready), `combine` (two of those) and
// `leave` (the result). A block is read from every input before it is written to any output, so
// that an output may be an input. What is left at the end goes through a vector on the stack, and
// so through the same arithmetic: no bit depends on where a block begins or how wide a vector is.

// Included once per target: the guard toggles.
#if defined(CAIS_NUMERIC_LOOP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIS_NUMERIC_LOOP_INL
#undef CAIS_NUMERIC_LOOP_INL
#else
#define CAIS_NUMERIC_LOOP_INL
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "hwy/highway.h"
#include "numeric/kernels/layout-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cais::numeric::HWY_NAMESPACE {

using Outputs = std::span<std::byte* const>;
using Inputs = std::span<const std::byte* const>;

/// Accumulators of one block: enough to hide the adder's latency, few enough for 16 registers.
inline constexpr std::size_t block_vectors = 8;

template <class Op, class Layout>
HWY_INLINE void enter(const Op& op, const std::byte* from, typename Layout::Vectors& to) {
  Layout::load(from, to);
#pragma GCC unroll 2
  for (auto& vector : to) vector = op.enter(typename Layout::Lanes(), vector);
}

template <class Op, class Layout>
HWY_INLINE void combine(const Op& op, const std::byte* from, typename Layout::Vectors& with) {
  typename Layout::Vectors next;
  enter<Op, Layout>(op, from, next);
#pragma GCC unroll 2
  for (std::size_t v = 0; v < Layout::vectors; ++v) {
    with[v] = op.combine(typename Layout::Lanes(), with[v], next[v]);
  }
}

template <class Op, class Layout>
HWY_INLINE auto leave(const Op& op, typename Layout::Vectors& results) {
#pragma GCC unroll 2
  for (auto& vector : results) vector = op.leave(typename Layout::Lanes(), vector);
  return Layout::pack(results);
}

/// Elements [begin, begin + unroll * Layout::elements).
template <class Op, class Layout, std::size_t unroll>
HWY_INLINE void reduce_block(const Op& op, Outputs outputs, Inputs inputs, std::size_t begin) {
  constexpr std::size_t input_step = Layout::elements * Layout::input_bytes;
  constexpr std::size_t output_step = Layout::elements * Layout::output_bytes;
  typename Layout::Vectors accumulators[unroll];
  const std::byte* first = inputs[0] + begin * Layout::input_bytes;
#pragma GCC unroll 16
  for (std::size_t u = 0; u < unroll; ++u) {
    enter<Op, Layout>(op, first + u * input_step, accumulators[u]);
  }
  for (const std::byte* input : inputs.subspan(1)) {
    input += begin * Layout::input_bytes;
#pragma GCC unroll 16
    for (std::size_t u = 0; u < unroll; ++u) {
      combine<Op, Layout>(op, input + u * input_step, accumulators[u]);
    }
  }
  hn::Vec<typename Layout::Packed> results[unroll];
#pragma GCC unroll 16
  for (std::size_t u = 0; u < unroll; ++u) results[u] = leave<Op, Layout>(op, accumulators[u]);
  for (std::byte* output : outputs) {
    output += begin * Layout::output_bytes;
#pragma GCC unroll 16
    for (std::size_t u = 0; u < unroll; ++u) {
      store_lanes(typename Layout::Packed(), results[u], output + u * output_step);
    }
  }
}

/// Elements [begin, begin + count) with count < Layout::elements.
template <class Op, class Layout>
HWY_INLINE void reduce_tail(const Op& op, Outputs outputs, Inputs inputs, std::size_t begin,
                            std::size_t count) {
  alignas(64)
      std::byte vector[Layout::elements * std::max(Layout::input_bytes, Layout::output_bytes)] = {};
  typename Layout::Vectors accumulator;
  const auto staged = [&](const std::byte* input) {
    std::memcpy(vector, input + begin * Layout::input_bytes, count * Layout::input_bytes);
    return vector;
  };
  enter<Op, Layout>(op, staged(inputs[0]), accumulator);
  for (const std::byte* input : inputs.subspan(1)) {
    combine<Op, Layout>(op, staged(input), accumulator);
  }
  store_lanes(typename Layout::Packed(), leave<Op, Layout>(op, accumulator), vector);
  for (std::byte* output : outputs) {
    std::memcpy(output + begin * Layout::output_bytes, vector, count * Layout::output_bytes);
  }
}

/// The kernel (Reducer::Kernel) of an op and a layout.
template <class Op, class Layout>
void reduce(Outputs outputs, Inputs inputs, std::size_t count, std::uint32_t divisor) {
  constexpr std::size_t unroll = block_vectors / Layout::vectors;
  const Op op(divisor);
  std::size_t at = 0;
  for (; count - at >= unroll * Layout::elements; at += unroll * Layout::elements) {
    reduce_block<Op, Layout, unroll>(op, outputs, inputs, at);
  }
  for (; count - at >= Layout::elements; at += Layout::elements) {
    reduce_block<Op, Layout, 1>(op, outputs, inputs, at);
  }
  if (at < count) reduce_tail<Op, Layout>(op, outputs, inputs, at, count - at);
}

}  // namespace cais::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CAIS_NUMERIC_LOOP_INL
