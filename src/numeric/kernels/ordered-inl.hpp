// numeric/kernels/ordered-inl.hpp — min and max. They round nothing, so they look at bits alone:
// a float becomes an integer key of the same order, and the integers' min or max is taken, in the
// 16 bits of a half too. Compiled once per instruction set.
//
// The order is −Inf < … < −0 < +0 < … < +Inf. A float's bits, read as a signed integer, are in this
// order once those below the sign are inverted in negative numbers; NaNs then lie at both ends.
// Adding the number of NaNs of one sign, with wrap-around, brings all of them to the low end, where
// min finds them; subtracting it brings them to the high end, where max does: NaN propagates.

// Included once per target: the guard toggles.
#if defined(CAIS_NUMERIC_ORDERED_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIS_NUMERIC_ORDERED_INL
#undef CAIS_NUMERIC_ORDERED_INL
#else
#define CAIS_NUMERIC_ORDERED_INL
#endif

#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/types.hpp"
#include "numeric/kernels/loop-inl.hpp"
#include "numeric/reduce.hpp"

HWY_BEFORE_NAMESPACE();
namespace cais::numeric::HWY_NAMESPACE {

/// NaNs of one sign: the fraction is anything but 0. None in integers.
template <class Element>
inline constexpr std::uint64_t nan_count = 0;
template <>
inline constexpr std::uint64_t nan_count<float> = (1u << 23) - 1;
template <>
inline constexpr std::uint64_t nan_count<double> = (1ull << 52) - 1;
template <>
inline constexpr std::uint64_t nan_count<hwy::float16_t> = (1u << 10) - 1;
template <>
inline constexpr std::uint64_t nan_count<hwy::bfloat16_t> = (1u << 7) - 1;

/// The sign-dependent inversion; it undoes itself.
template <class D>
HWY_INLINE hn::Vec<D> invert_below_sign(D bits, hn::Vec<D> vector) {
  using Unsigned = hn::TFromD<D>;
  const hn::RebindToSigned<D> numbers;
  const auto negative = hn::BitCast(bits, hn::BroadcastSignBit(hn::BitCast(numbers, vector)));
  const auto below_sign = hn::Set(bits, std::numeric_limits<Unsigned>::max() >> 1);
  return hn::Xor(vector, hn::And(negative, below_sign));
}

/// The lanes of a layout as keys of Element, shifted by the `offset` that gathers the NaNs.
template <class Element, bool nans_low>
struct Keys {
  template <class D>
  static constexpr auto offset(D) {
    using Unsigned = hwy::MakeUnsigned<hn::TFromD<D>>;
    constexpr auto nans = static_cast<Unsigned>(nan_count<Element>);
    return static_cast<Unsigned>(nans_low ? nans : Unsigned{0} - nans);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> enter(D lanes, hn::Vec<D> vector) {
    if constexpr (nan_count<Element> == 0) return vector;
    const hn::RebindToUnsigned<D> bits;
    const auto ordered = invert_below_sign(bits, hn::BitCast(bits, vector));
    return hn::BitCast(lanes, hn::Add(ordered, hn::Set(bits, offset(lanes))));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> leave(D lanes, hn::Vec<D> vector) {
    if constexpr (nan_count<Element> == 0) return vector;
    const hn::RebindToUnsigned<D> bits;
    const auto ordered = hn::Sub(hn::BitCast(bits, vector), hn::Set(bits, offset(lanes)));
    return hn::BitCast(lanes, invert_below_sign(bits, ordered));
  }
  /// What the keys are compared as: signed, but for unsigned elements.
  template <class D>
  using Numbers =
      std::conditional_t<std::is_same_v<Element, std::uint8_t>, D, hn::RebindToSigned<D>>;
};

template <template <class> class Op>
Reducer::Kernel ordered_kernel(DType input, DType output) {
  using F16 = hwy::float16_t;
  using BF16 = hwy::bfloat16_t;
  using Float = Op<float>;
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
      return reduce<Float, Plain<std::uint32_t>>;
    case DType::float64:
      return reduce<Op<double>, Plain<std::uint64_t>>;
    case DType::float16:
      return reduce<Op<F16>, Plain<std::uint16_t>>;
    case DType::bfloat16:
      return reduce<Op<BF16>, Plain<std::uint16_t>>;
    case DType::int8:
      return reduce<Op<std::int8_t>, Plain<std::int8_t>>;
    case DType::uint8:
      return reduce<Op<std::uint8_t>, Plain<std::uint8_t>>;
    case DType::int32:
      return reduce<Op<std::int32_t>, Plain<std::int32_t>>;
    case DType::int64:
      return reduce<Op<std::int64_t>, Plain<std::int64_t>>;
    default:
      return nullptr;
  }
}

}  // namespace cais::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CAIS_NUMERIC_ORDERED_INL
