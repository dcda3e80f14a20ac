// numeric/kernels/loop-inl.hpp — the N-way loop: a block of a few vectors is accumulated in
// registers over all inputs, in rank order, and written to all outputs. Compiled once per
// instruction set.
//
// An op gives, for its lanes: `enter` (an input's lanes, made ready), `combine` (two of those) and
// `leave` (the result). A block is read from every input before it is written to any output, so
// that an output may be an input. What is left at the end is a vector that is not full, and goes
// through the same arithmetic: no bit depends on where a block begins or how wide a vector is.

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
#include <span>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "numeric/kernels/layout-inl.hpp"
#include "numeric/reduce.hpp"

HWY_BEFORE_NAMESPACE();
namespace cais::numeric::HWY_NAMESPACE {

using Outputs = std::span<std::byte* const>;
using Inputs = std::span<const std::byte* const>;

/// Accumulators of one block: enough to hide the adder's latency, few enough for 16 registers.
inline constexpr std::size_t block_vectors = 8;

template <class Layout, class Op, class Access>
HWY_INLINE void enter(const Op& op, Access access, const std::byte* from,
                      typename Layout::Vectors& to) {
  Layout::load(access, from, to);
#pragma GCC unroll 2
  for (auto& vector : to) vector = op.enter(typename Layout::Lanes(), vector);
}

template <class Layout, class Op, class Access>
HWY_INLINE void combine(const Op& op, Access access, const std::byte* from,
                        typename Layout::Vectors& with) {
  typename Layout::Vectors next;
  enter<Layout>(op, access, from, next);
#pragma GCC unroll 2
  for (std::size_t v = 0; v < Layout::vectors; ++v) {
    with[v] = op.combine(typename Layout::Lanes(), with[v], next[v]);
  }
}

template <class Layout, class Op>
HWY_INLINE auto leave(const Op& op, typename Layout::Vectors& results) {
#pragma GCC unroll 2
  for (auto& vector : results) vector = op.leave(typename Layout::Lanes(), vector);
  return Layout::pack(results);
}

/// Elements [begin, begin + unroll * Layout::elements), or as many as `access` allows.
template <class Layout, std::size_t unroll, class Op, class Access>
HWY_INLINE void reduce_block(const Op& op, Access access, Outputs outputs, Inputs inputs,
                             std::size_t begin) {
  constexpr std::size_t input_step = Layout::elements * Layout::input_bytes;
  constexpr std::size_t output_step = Layout::elements * Layout::output_bytes;
  typename Layout::Vectors accumulators[unroll];
  const std::byte* first = inputs[0] + begin * Layout::input_bytes;
#pragma GCC unroll 16
  for (std::size_t u = 0; u < unroll; ++u) {
    enter<Layout>(op, access, first + u * input_step, accumulators[u]);
  }
  for (const std::byte* input : inputs.subspan(1)) {
    input += begin * Layout::input_bytes;
#pragma GCC unroll 16
    for (std::size_t u = 0; u < unroll; ++u) {
      combine<Layout>(op, access, input + u * input_step, accumulators[u]);
    }
  }
  hn::Vec<typename Layout::Packed> results[unroll];
#pragma GCC unroll 16
  for (std::size_t u = 0; u < unroll; ++u) results[u] = leave<Layout>(op, accumulators[u]);
  for (std::byte* output : outputs) {
    output += begin * Layout::output_bytes;
#pragma GCC unroll 16
    for (std::size_t u = 0; u < unroll; ++u) {
      access.template store<Layout::output_bytes>(typename Layout::Packed(), results[u],
                                                  output + u * output_step);
    }
  }
}

/// Elements [begin, end).
template <class Layout, class Op, class Access>
HWY_INLINE void reduce_range(const Op& op, Access access, Outputs outputs, Inputs inputs,
                             std::size_t begin, std::size_t end) {
  constexpr std::size_t unroll = block_vectors / Layout::vectors;
  constexpr std::size_t block = unroll * Layout::elements;
  for (; end - begin >= block; begin += block) {
    reduce_block<Layout, unroll>(op, access, outputs, inputs, begin);
  }
  for (; end - begin >= Layout::elements; begin += Layout::elements) {
    reduce_block<Layout, 1>(op, access, outputs, inputs, begin);
  }
  if (begin < end) reduce_block<Layout, 1>(op, First{end - begin}, outputs, inputs, begin);
}

/// Elements before the first at which every output is aligned to a vector, or `count` when there
/// are no more, or no such element.
template <class Layout>
std::size_t elements_before_alignment(Outputs outputs, std::size_t count) {
  constexpr std::size_t vector_bytes = Layout::elements * Layout::output_bytes;
  const auto missing = [](const std::byte* output) {
    return (vector_bytes - reinterpret_cast<std::uintptr_t>(output) % vector_bytes) % vector_bytes;
  };
  const std::size_t bytes = missing(outputs[0]);
  for (const std::byte* output : outputs) {
    if (missing(output) != bytes || bytes % Layout::output_bytes != 0) return count;
  }
  return std::min(bytes / Layout::output_bytes, count);
}

/// The kernel (Reducer::Kernel) of an op and a layout.
template <class Op, class Layout>
void reduce(Outputs outputs, Inputs inputs, std::size_t count, std::uint32_t divisor,
            Stores stores) {
  const Op op(divisor);
  if (stores == Stores::cached) {
    reduce_range<Layout>(op, Whole(), outputs, inputs, 0, count);
    return;
  }
  const std::size_t aligned = elements_before_alignment<Layout>(outputs, count);
  reduce_range<Layout>(op, Whole(), outputs, inputs, 0, aligned);
  reduce_range<Layout>(op, Streamed(), outputs, inputs, aligned, count);
  hwy::FlushStream();
}

}  // namespace cais::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CAIS_NUMERIC_LOOP_INL
