// The scalar truth about reductions: one element at a time, in the words of the contract.
#include <cmath>
#include <cstring>
#include <type_traits>

#include "numeric/half.hpp"
#include "numeric/reduce.hpp"

namespace cais::numeric {
namespace {

/// An element type: what lies in memory, what is computed with, and the way between them.
template <typename T>
struct Plain {
  using Stored = T;
  using Accumulator = T;
  static T decode(T value) { return value; }
  static T encode(T value) { return value; }
};
template <typename Format>
struct Half {
  using Stored = std::uint16_t;
  using Accumulator = float;
  static float decode(std::uint16_t bits) { return Format::decode(bits); }
  static std::uint16_t encode(float value) { return Format::encode(value); }
};

/// Integers as unsigned numbers of 64 bits, whose arithmetic wraps; floats as they are.
template <typename T>
auto wrapping(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::uint64_t>(value);
  } else {
    return value;
  }
}

template <typename T>
bool is_negative(T value) {
  if constexpr (std::is_integral_v<T>) {
    return value < 0;
  } else {
    return std::signbit(value);
  }
}

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(value);
  }
}

/// The lesser of two numbers, −0 below +0. A NaN is less than everything, and, in `greater_of`,
/// greater: it propagates.
template <typename T>
T lesser_of(T a, T b) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) ? a : b;
  if (a == b) return is_negative(a) ? a : b;
  return a < b ? a : b;
}
template <typename T>
T greater_of(T a, T b) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) ? a : b;
  if (a == b) return is_negative(a) ? b : a;
  return a < b ? b : a;
}

template <typename T>
T combine(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return static_cast<T>(wrapping(a) + wrapping(b));
    case ReduceOp::product:
      return static_cast<T>(wrapping(a) * wrapping(b));
    case ReduceOp::min:
      return lesser_of(a, b);
    case ReduceOp::max:
      return greater_of(a, b);
    case ReduceOp::none:
      break;
  }
  return a;
}

template <typename T>
T quotient(T sum, std::uint32_t divisor) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(std::int64_t{sum} / std::int64_t{divisor});
  } else {
    return sum / static_cast<T>(divisor);
  }
}

template <typename Input, typename Output>
void reduce(const Reduction& reduction, std::span<std::byte* const> outputs,
            std::span<const std::byte* const> inputs, std::size_t count) {
  using Accumulator = typename Input::Accumulator;
  static_assert(std::is_same_v<Accumulator, typename Output::Accumulator>);
  for (std::size_t i = 0; i < count; ++i) {
    const auto element = [&](std::size_t rank) {
      typename Input::Stored stored;
      std::memcpy(&stored, inputs[rank] + i * sizeof stored, sizeof stored);
      return Input::decode(stored);
    };
    Accumulator result = element(0);
    for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
      result = combine(reduction.op, result, element(rank));
    }
    if (reduction.op == ReduceOp::avg) result = quotient(result, reduction.divisor);
    const typename Output::Stored stored = Output::encode(result);
    for (std::byte* output : outputs)
      std::memcpy(output + i * sizeof stored, &stored, sizeof stored);
  }
}

using Function = void (*)(const Reduction&, std::span<std::byte* const>,
                          std::span<const std::byte* const>, std::size_t);

Function function_for(DType input, DType output) {
  using F32 = Plain<float>;
  using F16 = Half<Float16>;
  using BF16 = Half<BFloat16>;
  if (input == DType::float32 && output == DType::float16) return reduce<F32, F16>;
  if (input == DType::float32 && output == DType::bfloat16) return reduce<F32, BF16>;
  if (input == DType::float16 && output == DType::float32) return reduce<F16, F32>;
  if (input == DType::bfloat16 && output == DType::float32) return reduce<BF16, F32>;
  if (input != output) return nullptr;
  switch (input) {
    case DType::float32:
      return reduce<F32, F32>;
    case DType::float64:
      return reduce<Plain<double>, Plain<double>>;
    case DType::float16:
      return reduce<F16, F16>;
    case DType::bfloat16:
      return reduce<BF16, BF16>;
    case DType::int8:
      return reduce<Plain<std::int8_t>, Plain<std::int8_t>>;
    case DType::uint8:
      return reduce<Plain<std::uint8_t>, Plain<std::uint8_t>>;
    case DType::int32:
      return reduce<Plain<std::int32_t>, Plain<std::int32_t>>;
    case DType::int64:
      return reduce<Plain<std::int64_t>, Plain<std::int64_t>>;
    default:
      return nullptr;
  }
}

}  // namespace

bool reduce_reference(const Reduction& reduction, std::span<std::byte* const> outputs,
                      std::span<const std::byte* const> inputs, std::size_t count) {
  const Function function = function_for(reduction.input, reduction.output);
  if (function == nullptr || reduction.op == ReduceOp::none || reduction.divisor == 0) return false;
  function(reduction, outputs, inputs, count);
  return true;
}

}  // namespace cais::numeric
