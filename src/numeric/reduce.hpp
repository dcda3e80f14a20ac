// numeric/reduce.hpp — N-way reduction in one pass: each input is read once, each output written
// once, in rank order, so that the bits of a result do not depend on who computes it or when.
//
// Halves are accumulated in float32 and rounded once, to nearest even. Integers wrap. min and max
// propagate NaN, and −0 < +0. avg divides the sum by `divisor` in the accumulator (integers: the
// wrapped sum, toward zero). Denormals are exact, as long as the process leaves the floating-point
// environment at its default.
// SIMD kernels are chosen at run time (Google Highway); `reduce_reference` is the scalar truth
// that they equal bit for bit (any NaN equals any NaN).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/types.hpp"

namespace cais::numeric {

/// What is reduced, and the element types on both sides. `input` and `output` are equal, except
/// in two-step sums of halves, whose partials are float32: half → float32, then float32 → half.
struct Reduction {
  ReduceOp op = ReduceOp::sum;
  DType input = DType::float32;
  DType output = DType::float32;
  std::uint32_t divisor = 1;  // of avg: the number of ranks that the result stands for
};

/// How results are written.
enum class Stores : std::uint8_t {
  cached,     // as usual: the lines of the outputs are read into the cache first
  streaming,  // past the cache, straight to memory
};

/// A kernel for one Reduction. Cheap to copy.
class Reducer {
 public:
  /// The kernel, or nothing when the types do not fit the op (opaque types, int8 → float32, …) or
  /// the divisor is 0.
  static std::optional<Reducer> find(const Reduction& reduction);

  /// outputs[k][i] = inputs[0][i] ∘ inputs[1][i] ∘ … for i in [0, count) and every k.
  /// At least one input and one output, at most ranks_max of each. An output may be the same
  /// memory as an input, but must not overlap one in part. Pointers need element alignment only.
  void operator()(std::span<std::byte* const> outputs, std::span<const std::byte* const> inputs,
                  std::size_t count) const {
    kernel_(outputs, inputs, count, divisor_, Stores::cached);
  }

  /// The same bits, written past the cache. Pays where inputs and outputs together outgrow the
  /// last-level cache and no output is an input: up to twice as fast, for memory that would have
  /// been read only to be overwritten is not read. Costs a few percent where they fit, and whoever
  /// reads the outputs next reads them from memory. All is visible to other cores on return.
  void stream(std::span<std::byte* const> outputs, std::span<const std::byte* const> inputs,
              std::size_t count) const {
    kernel_(outputs, inputs, count, divisor_, Stores::streaming);
  }

  using Kernel = void (*)(std::span<std::byte* const>, std::span<const std::byte* const>,
                          std::size_t count, std::uint32_t divisor, Stores stores);

 private:
  Reducer(Kernel kernel, std::uint32_t divisor) : kernel_(kernel), divisor_(divisor) {}
  Kernel kernel_;
  std::uint32_t divisor_;
};

/// The same in plain scalar code: slow, and obviously right. False when the types do not fit.
bool reduce_reference(const Reduction& reduction, std::span<std::byte* const> outputs,
                      std::span<const std::byte* const> inputs, std::size_t count);

/// Name of the instruction set that the kernels run on here, as Highway calls it: "AVX3" (AVX-512),
/// "AVX2", "SSE4", "NEON", or "SCALAR" where there is none.
const char* instruction_set();

}  // namespace cais::numeric
