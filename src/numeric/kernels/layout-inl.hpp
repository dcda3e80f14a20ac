// numeric/kernels/layout-inl.hpp — how elements in memory become the lanes that are computed with,
// and how results become elements again. Compiled once per instruction set.
//
// A layout moves `elements` elements at a time: `load` spreads them over `vectors` vectors of its
// lanes, `pack` turns that many results into one vector of the output's element type, rounding
// halves to nearest even, and `store` writes it. Memory needs no alignment.
//
// The conversions are integer arithmetic where Highway's own are not exact: its float32 → bfloat16
// does not round to nearest even, and its emulated float16 knows neither infinity nor NaN.

// Included once per target: the guard toggles.
#if defined(CAIS_NUMERIC_LAYOUT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIS_NUMERIC_LAYOUT_INL
#undef CAIS_NUMERIC_LAYOUT_INL
#else
#define CAIS_NUMERIC_LAYOUT_INL
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cais::numeric::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> load_lanes(D d, const std::byte* from) {
#if HWY_TARGET == HWY_SCALAR
  hn::TFromD<D> lane;  // a plain read would need alignment and the element's own type
  std::memcpy(&lane, from, sizeof lane);
  return hn::Set(d, lane);
#else
  return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(from));
#endif
}

template <class D>
HWY_INLINE void store_lanes([[maybe_unused]] D d, hn::Vec<D> vector, std::byte* to) {
#if HWY_TARGET == HWY_SCALAR
  const hn::TFromD<D> lane = hn::GetLane(vector);
  std::memcpy(to, &lane, sizeof lane);
#else
  hn::StoreU(vector, d, reinterpret_cast<hn::TFromD<D>*>(to));
#endif
}

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;           // their bits
using HalfWords = hn::Rebind<std::uint16_t, Floats>;  // as many halves: a vector half as wide

/// The bits of float32s, rounded to bfloat16 in the upper half of each word; the lower is debris.
HWY_INLINE hn::Vec<Words> round_to_bfloat16(hn::Vec<Floats> values) {
  const Words words;
  const auto bits = hn::BitCast(words, values);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(words, 0x7fff)));
  const auto quieted = hn::Or(bits, hn::Set(words, 0x400000));  // rounding could carry a NaN away
  return hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(values)), quieted, rounded);
}

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_SSE4

HWY_INLINE hn::Vec<Floats> from_float16(hn::Vec<HalfWords> halves) {
  const Words words;
  const Floats floats;
  const auto bits = hn::PromoteTo(words, halves);
  const auto magnitude = hn::And(bits, hn::Set(words, 0x7fff));
  const auto sign = hn::ShiftLeft<16>(hn::Xor(bits, magnitude));
  const auto shifted = hn::ShiftLeft<13>(magnitude);
  // Multiplying by 2^112 moves the exponent's bias from 15 to 127, also of denormals, exactly.
  const auto scaled = hn::Mul(hn::BitCast(floats, shifted), hn::Set(floats, 0x1p112f));
  const auto special = hn::Or(shifted, hn::Set(words, 0x7f800000));
  const auto finite =
      hn::Lt(hn::BitCast(floats, shifted), hn::BitCast(floats, hn::Set(words, 0x7c00u << 13)));
  const auto result =
      hn::IfThenElse(hn::RebindMask(words, finite), hn::BitCast(words, scaled), special);
  return hn::BitCast(floats, hn::Or(result, sign));
}

HWY_INLINE hn::Vec<HalfWords> to_float16(hn::Vec<Floats> values) {
  const Words words;
  const Floats floats;
  const auto bits = hn::BitCast(words, values);
  const auto magnitude = hn::And(bits, hn::Set(words, 0x7fffffff));
  const auto sign = hn::ShiftRight<16>(hn::Xor(bits, magnitude));
  const auto size = hn::BitCast(floats, magnitude);
  // Normal: move the bias from 127 to 15 and round the 13 lower bits away, ties to even.
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(words, 1));
  const auto rounding = hn::Set(words, (15u - 127u) * 0x800000u + 0xfffu);
  const auto normal = hn::ShiftRight<13>(hn::Add(magnitude, hn::Add(rounding, odd)));
  // Denormal: adding 0.5 lets the adder round to multiples of 2^-24, the spacing of denormals.
  const auto half = hn::Set(floats, 0.5f);
  const auto denormal = hn::Sub(hn::BitCast(words, hn::Add(size, half)), hn::BitCast(words, half));
  const auto small = hn::RebindMask(words, hn::Lt(size, hn::Set(floats, 0x1p-14f)));
  const auto huge = hn::RebindMask(words, hn::Ge(size, hn::Set(floats, 0x1p16f)));
  const auto nan = hn::RebindMask(words, hn::IsNaN(values));
  auto result = hn::IfThenElse(small, denormal, normal);
  result = hn::IfThenElse(huge, hn::Set(words, 0x7c00), result);
  result = hn::IfThenElse(nan, hn::Set(words, 0x7e00), result);
  return hn::TruncateTo(HalfWords(), hn::Or(result, sign));
}

#else  // the instruction set converts in hardware

HWY_INLINE hn::Vec<Floats> from_float16(hn::Vec<HalfWords> halves) {
  return hn::PromoteTo(Floats(), hn::BitCast(hn::Rebind<hwy::float16_t, Floats>(), halves));
}
HWY_INLINE hn::Vec<HalfWords> to_float16(hn::Vec<Floats> values) {
  return hn::BitCast(HalfWords(), hn::DemoteTo(hn::Rebind<hwy::float16_t, Floats>(), values));
}

#endif

/// Between an element type in memory and float32 lanes.
template <class Element>
struct Convert;
template <>
struct Convert<float> {
  using Packed = Floats;
  static HWY_INLINE hn::Vec<Floats> load(const std::byte* from) {
    return load_lanes(Floats(), from);
  }
  static HWY_INLINE hn::Vec<Floats> pack(hn::Vec<Floats> values) { return values; }
};
template <>
struct Convert<hwy::float16_t> {
  using Packed = HalfWords;
  static HWY_INLINE hn::Vec<Floats> load(const std::byte* from) {
    return from_float16(load_lanes(HalfWords(), from));
  }
  static HWY_INLINE hn::Vec<HalfWords> pack(hn::Vec<Floats> values) { return to_float16(values); }
};
template <>
struct Convert<hwy::bfloat16_t> {
  using Packed = HalfWords;
  static HWY_INLINE hn::Vec<Floats> load(const std::byte* from) {
    const auto words = hn::PromoteTo(Words(), load_lanes(HalfWords(), from));
    return hn::BitCast(Floats(), hn::ShiftLeft<16>(words));
  }
  static HWY_INLINE hn::Vec<HalfWords> pack(hn::Vec<Floats> values) {
    return hn::TruncateTo(HalfWords(), hn::ShiftRight<16>(round_to_bfloat16(values)));
  }
};

/// float32 lanes between elements of types Input and Output.
template <class Input, class Output>
struct Converted {
  using Lanes = Floats;
  using Packed = typename Convert<Output>::Packed;
  static constexpr std::size_t vectors = 1;
  static constexpr std::size_t elements = hn::MaxLanes(Lanes());
  static constexpr std::size_t input_bytes = sizeof(Input);
  static constexpr std::size_t output_bytes = sizeof(Output);
  using Vectors = hn::Vec<Lanes>[vectors];

  static HWY_INLINE void load(const std::byte* from, Vectors& to) {
    to[0] = Convert<Input>::load(from);
  }
  static HWY_INLINE hn::Vec<Packed> pack(const Vectors& results) {
    return Convert<Output>::pack(results[0]);
  }
};

/// Lanes of type Lane that are stored as they are computed.
template <class Lane>
struct Plain {
  using Lanes = hn::ScalableTag<Lane>;
  using Packed = Lanes;
  static constexpr std::size_t vectors = 1;
  static constexpr std::size_t elements = hn::MaxLanes(Lanes());
  static constexpr std::size_t input_bytes = sizeof(Lane);
  static constexpr std::size_t output_bytes = sizeof(Lane);
  using Vectors = hn::Vec<Lanes>[vectors];

  static HWY_INLINE void load(const std::byte* from, Vectors& to) {
    to[0] = load_lanes(Lanes(), from);
  }
  static HWY_INLINE hn::Vec<Packed> pack(const Vectors& results) { return results[0]; }
};

/// bfloat16 on both sides: a word holds two, and each is the upper half of a float32, so that a
/// shift and a mask give two vectors of float32 where a conversion would shuffle between lanes.
struct BFloat16Pairs {
  using Lanes = Floats;
  using Packed = Words;
  static constexpr std::size_t vectors = 2;
  static constexpr std::size_t elements = 2 * hn::MaxLanes(Lanes());
  static constexpr std::size_t input_bytes = 2;
  static constexpr std::size_t output_bytes = 2;
  using Vectors = hn::Vec<Lanes>[vectors];

  static HWY_INLINE void load(const std::byte* from, Vectors& to) {
    const auto words = load_lanes(Words(), from);
    to[0] = hn::BitCast(Lanes(), hn::ShiftLeft<16>(words));
    to[1] = hn::BitCast(Lanes(), hn::And(words, hn::Set(Words(), 0xffff0000)));
  }
  static HWY_INLINE hn::Vec<Packed> pack(const Vectors& results) {
    const auto upper = hn::And(round_to_bfloat16(results[1]), hn::Set(Words(), 0xffff0000));
    return hn::Or(hn::ShiftRight<16>(round_to_bfloat16(results[0])), upper);
  }
};

}  // namespace cais::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CAIS_NUMERIC_LAYOUT_INL
