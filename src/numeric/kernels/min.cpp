// Minimum over the ranks, for every element type: −0 < +0, and NaN propagates.
#include "numeric/kernels/find.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/kernels/min.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numeric/kernels/ordered-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cais::numeric::HWY_NAMESPACE {

template <class Element>
struct Min : Keys<Element, /*nans_low=*/true> {
  explicit Min(std::uint32_t /*divisor*/) {}
  template <class D>
  HWY_INLINE hn::Vec<D> combine(D lanes, hn::Vec<D> a, hn::Vec<D> b) const {
    const typename Min::template Numbers<D> numbers;
    return hn::BitCast(lanes, hn::Min(hn::BitCast(numbers, a), hn::BitCast(numbers, b)));
  }
};

Reducer::Kernel min_kernel(DType input, DType output) { return ordered_kernel<Min>(input, output); }

}  // namespace cais::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cais::numeric {
HWY_EXPORT(min_kernel);

Reducer::Kernel find_min(DType input, DType output) {
  return HWY_DYNAMIC_DISPATCH(min_kernel)(input, output);
}

}  // namespace cais::numeric
#endif  // HWY_ONCE
