// numeric/kernels/arithmetic-inl.hpp — which lanes sum, avg and product compute in: floats and
// doubles in themselves, halves in float32, integers in the unsigned type of their width, whose
// arithmetic wraps. Compiled once per instruction set.

// Included once per target: the guard toggles.
#if defined(CAIS_NUMERIC_ARITHMETIC_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIS_NUMERIC_ARITHMETIC_INL
#undef CAIS_NUMERIC_ARITHMETIC_INL
#else
#define CAIS_NUMERIC_ARITHMETIC_INL
#endif

#include <cstdint>
#include <type_traits>

#include "base/types.hpp"
#include "numeric/kernels/loop-inl.hpp"
#include "numeric/reduce.hpp"

HWY_BEFORE_NAMESPACE();
namespace cais::numeric::HWY_NAMESPACE {

template <template <class> class Op>
Reducer::Kernel arithmetic_kernel(DType input, DType output) {
  using Float = Op<float>;
  using F16 = hwy::float16_t;
  using BF16 = hwy::bfloat16_t;
  if (input == DType::float16 && output == DType::float32)
    return reduce<Float, Converted<F16, float>>;
  if (input == DType::float32 && output == DType::float16)
    return reduce<Float, Converted<float, F16>>;
  if (input == DType::bfloat16 && output == DType::float32) {
    return reduce<Float, Converted<BF16, float>>;
  }
  if (input == DType::float32 && output == DType::bfloat16) {
    return reduce<Float, Converted<float, BF16>>;
  }
  if (input != output) return nullptr;
  switch (input) {
    case DType::float32:
      return reduce<Float, Plain<float>>;
    case DType::float64:
      return reduce<Op<double>, Plain<double>>;
    case DType::float16:
      return reduce<Float, Converted<F16, F16>>;
    case DType::bfloat16:
      return reduce<Float, BFloat16Pairs>;
    case DType::int8:
      return reduce<Op<std::int8_t>, Plain<std::uint8_t>>;
    case DType::uint8:
      return reduce<Op<std::uint8_t>, Plain<std::uint8_t>>;
    case DType::int32:
      return reduce<Op<std::int32_t>, Plain<std::uint32_t>>;
    case DType::int64:
      return reduce<Op<std::int64_t>, Plain<std::uint64_t>>;
    default:
      return nullptr;
  }
}

}  // namespace cais::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CAIS_NUMERIC_ARITHMETIC_INL
