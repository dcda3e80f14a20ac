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

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cais::numeric::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Access to a whole vector in memory.
struct Whole {
  template <std::size_t element_bytes, class D>
  HWY_INLINE hn::Vec<D> load(D lanes, const std::byte* from) const {
#if HWY_TARGET == HWY_SCALAR
    hn::TFromD<D> lane;  // a plain read would need alignment and the element's own type
    std::memcpy(&lane, from, sizeof lane);
    return hn::Set(lanes, lane);
#else
    return hn::LoadU(lanes, reinterpret_cast<const hn::TFromD<D>*>(from));
#endif
  }
  template <std::size_t element_bytes, class D>
  HWY_INLINE void store([[maybe_unused]] D lanes, hn::Vec<D> vector, std::byte* to) const {
#if HWY_TARGET == HWY_SCALAR
    const hn::TFromD<D> lane = hn::GetLane(vector);
    std::memcpy(to, &lane, sizeof lane);
#else
    hn::StoreU(vector, lanes, reinterpret_cast<hn::TFromD<D>*>(to));
#endif
  }
};

/// The same, with stores past the cache; `to` is aligned to the vector.
struct Streamed : Whole {
#if HWY_TARGET != HWY_SCALAR
  template <std::size_t element_bytes, class D>
  HWY_INLINE void store(D lanes, hn::Vec<D> vector, std::byte* to) const {
    if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) < HWY_STREAM_MULTIPLE) {
      Whole::store<element_bytes>(lanes, vector, to);  // Stream would write more than the vector
    } else {
      hn::Stream(vector, lanes, reinterpret_cast<hn::TFromD<D>*>(to));
    }
  }
#endif
};

/// Access to the first elements of a vector; what lies behind them is not touched, and 0 in lanes.
struct First {
  std::size_t elements;

#if HWY_MEM_OPS_MIGHT_FAULT || HWY_TARGET == HWY_SCALAR  // no masked access: over the stack
  template <std::size_t element_bytes, class D>
  HWY_INLINE hn::Vec<D> load(D lanes, const std::byte* from) const {
    HWY_ALIGN hn::TFromD<D> staged[hn::MaxLanes(D())] = {};
    std::memcpy(staged, from, elements * element_bytes);
    return hn::Load(lanes, staged);
  }
  template <std::size_t element_bytes, class D>
  HWY_INLINE void store(D lanes, hn::Vec<D> vector, std::byte* to) const {
    HWY_ALIGN hn::TFromD<D> staged[hn::MaxLanes(D())];
    hn::Store(vector, lanes, staged);
    std::memcpy(to, staged, elements * element_bytes);
  }
#else
  template <std::size_t element_bytes, class D>
  HWY_INLINE hn::Vec<D> load(D lanes, const std::byte* from) const {
    const hn::Repartition<std::uint8_t, D> bytes;
    const auto mask = hn::FirstN(bytes, elements * element_bytes);
    return hn::BitCast(lanes,
                       hn::MaskedLoad(mask, bytes, reinterpret_cast<const std::uint8_t*>(from)));
  }
  template <std::size_t element_bytes, class D>
  HWY_INLINE void store(D, hn::Vec<D> vector, std::byte* to) const {
    const hn::Repartition<std::uint8_t, D> bytes;
    const auto mask = hn::FirstN(bytes, elements * element_bytes);
    hn::BlendedStore(hn::BitCast(bytes, vector), mask, bytes, reinterpret_cast<std::uint8_t*>(to));
  }
#endif
};

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;           // their bits
using HalfWords = hn::Rebind<std::uint16_t, Floats>;  // as many halves: a vector half as wide

/// The bits of float32s, rounded to bfloat16 in the upper half of each word; the lower is debris.
/// Not for NaNs with a bit set in the lower half, which the carry could turn into zeros.
HWY_INLINE hn::Vec<Words> round_to_bfloat16(hn::Vec<Floats> values) {
  const Words words;
  const auto bits = hn::BitCast(words, values);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
  return hn::Add(bits, hn::Add(odd, hn::Set(words, 0x7fff)));
}

/// The same for any float32.
HWY_INLINE hn::Vec<Words> round_any_to_bfloat16(hn::Vec<Floats> values) {
  const Words words;
  const auto quiet = hn::Or(hn::BitCast(words, values), hn::Set(words, 0x400000));
  const auto nan = hn::RebindMask(words, hn::IsNaN(values));
  return hn::IfThenElse(nan, quiet, round_to_bfloat16(values));
}

#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || HWY_TARGET == HWY_NEON  // F16C, or Arm's own

HWY_INLINE hn::Vec<Floats> from_float16(hn::Vec<HalfWords> halves) {
  return hn::PromoteTo(Floats(), hn::BitCast(hn::Rebind<hwy::float16_t, Floats>(), halves));
}
HWY_INLINE hn::Vec<HalfWords> to_float16(hn::Vec<Floats> values) {
  return hn::BitCast(HalfWords(), hn::DemoteTo(hn::Rebind<hwy::float16_t, Floats>(), values));
}

#else

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

#endif

/// Between an element type in memory and float32 lanes.
template <class Element>
struct Convert;
template <>
struct Convert<float> {
  using Packed = Floats;
  template <class Access>
  static HWY_INLINE hn::Vec<Floats> load(Access access, const std::byte* from) {
    return access.template load<4>(Floats(), from);
  }
  static HWY_INLINE hn::Vec<Floats> pack(hn::Vec<Floats> values) { return values; }
};
template <>
struct Convert<hwy::float16_t> {
  using Packed = HalfWords;
  template <class Access>
  static HWY_INLINE hn::Vec<Floats> load(Access access, const std::byte* from) {
    return from_float16(access.template load<2>(HalfWords(), from));
  }
  static HWY_INLINE hn::Vec<HalfWords> pack(hn::Vec<Floats> values) { return to_float16(values); }
};
template <>
struct Convert<hwy::bfloat16_t> {
  using Packed = HalfWords;
  template <class Access>
  static HWY_INLINE hn::Vec<Floats> load(Access access, const std::byte* from) {
    const auto words = hn::PromoteTo(Words(), access.template load<2>(HalfWords(), from));
    return hn::BitCast(Floats(), hn::ShiftLeft<16>(words));
  }
  static HWY_INLINE hn::Vec<HalfWords> pack(hn::Vec<Floats> values) {
    return hn::TruncateTo(HalfWords(), hn::ShiftRight<16>(round_any_to_bfloat16(values)));
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

  template <class Access>
  static HWY_INLINE void load(Access access, const std::byte* from, Vectors& to) {
    to[0] = Convert<Input>::load(access, from);
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

  template <class Access>
  static HWY_INLINE void load(Access access, const std::byte* from, Vectors& to) {
    to[0] = access.template load<input_bytes>(Lanes(), from);
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

  template <class Access>
  static HWY_INLINE void load(Access access, const std::byte* from, Vectors& to) {
    const auto words = access.template load<input_bytes>(Words(), from);
    to[0] = hn::BitCast(Lanes(), hn::ShiftLeft<16>(words));
    to[1] = hn::BitCast(Lanes(), hn::And(words, hn::Set(Words(), 0xffff0000)));
  }
  /// A NaN among the results is an input's, or the hardware's own: its lower half is 0.
  static HWY_INLINE hn::Vec<Packed> pack(const Vectors& results) {
    const auto lower = hn::ShiftRight<16>(round_to_bfloat16(results[0]));
    return hn::OrAnd(lower, round_to_bfloat16(results[1]), hn::Set(Words(), 0xffff0000));
  }
};

}  // namespace cais::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CAIS_NUMERIC_LAYOUT_INL
