// The sum in rank order, divided by a count: in the accumulator, once. Division, not multiplication
// by a reciprocal, so that the result is the rounded quotient.
#include "numeric/kernels/find.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/kernels/avg.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numeric/kernels/arithmetic-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cais::numeric::HWY_NAMESPACE {

template <class Element>
struct Avg {
  explicit Avg(std::uint32_t divisor_in) : divisor(divisor_in) {}
  template <class D>
  HWY_INLINE hn::Vec<D> enter(D, hn::Vec<D> input) const {
    return input;
  }
  template <class D>
  HWY_INLINE hn::Vec<D> combine(D, hn::Vec<D> a, hn::Vec<D> b) const {
    return hn::Add(a, b);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> leave(D lanes, hn::Vec<D> result) const {
    if constexpr (std::is_floating_point_v<Element>) {
      return hn::Div(result, hn::Set(lanes, static_cast<Element>(divisor)));
    } else {
      HWY_ALIGN hn::TFromD<D> sums[hn::MaxLanes(D())];
      hn::Store(result, lanes, sums);
      for (auto& sum : sums) sum = static_cast<hn::TFromD<D>>(quotient(static_cast<Element>(sum)));
      return hn::Load(lanes, sums);
    }
  }
  /// Of a sum of integers, toward zero.
  Element quotient(Element sum) const {
    if constexpr (sizeof(Element) == 8) {
      return sum / std::int64_t{divisor};
    } else {
      // Compilers turn this into vectors, and it is exact: a quotient of 32-bit integers lies
      // further below the next integer than a double's rounding can lift it.
      return static_cast<Element>(static_cast<double>(sum) / static_cast<double>(divisor));
    }
  }
  std::uint32_t divisor;
};

Reducer::Kernel avg_kernel(DType input, DType output) {
  return arithmetic_kernel<Avg>(input, output);
}

}  // namespace cais::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cais::numeric {
HWY_EXPORT(avg_kernel);

Reducer::Kernel find_avg(DType input, DType output) {
  return HWY_DYNAMIC_DISPATCH(avg_kernel)(input, output);
}

}  // namespace cais::numeric
#endif  // HWY_ONCE
