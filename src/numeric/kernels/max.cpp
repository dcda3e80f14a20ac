// Maximum over the ranks, for every element type: −0 < +0, and NaN propagates.
#include "numeric/kernels/find.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/kernels/max.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numeric/kernels/ordered-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cais::numeric::HWY_NAMESPACE {

template <class Element>
struct Max : Keys<Element, /*nans_low=*/false> {
  explicit Max(std::uint32_t /*divisor*/) {}
  template <class D>
  HWY_INLINE hn::Vec<D> combine(D lanes, hn::Vec<D> a, hn::Vec<D> b) const {
    const typename Max::template Numbers<D> numbers;
    return hn::BitCast(lanes, hn::Max(hn::BitCast(numbers, a), hn::BitCast(numbers, b)));
  }
};

Reducer::Kernel max_kernel(DType input, DType output) { return ordered_kernel<Max>(input, output); }

}  // namespace cais::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cais::numeric {
HWY_EXPORT(max_kernel);

Reducer::Kernel find_max(DType input, DType output) {
  return HWY_DYNAMIC_DISPATCH(max_kernel)(input, output);
}

}  // namespace cais::numeric
#endif  // HWY_ONCE
