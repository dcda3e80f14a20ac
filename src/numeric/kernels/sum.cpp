// Sum in rank order, for every element type.
#include "numeric/kernels/find.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/kernels/sum.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numeric/kernels/arithmetic-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cais::numeric::HWY_NAMESPACE {

template <class Element>
struct Sum {
  explicit Sum(std::uint32_t /*divisor*/) {}
  template <class D>
  HWY_INLINE hn::Vec<D> enter(D, hn::Vec<D> input) const {
    return input;
  }
  template <class D>
  HWY_INLINE hn::Vec<D> combine(D, hn::Vec<D> a, hn::Vec<D> b) const {
    return hn::Add(a, b);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> leave(D, hn::Vec<D> result) const {
    return result;
  }
};

Reducer::Kernel sum_kernel(DType input, DType output) {
  return arithmetic_kernel<Sum>(input, output);
}

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace cais::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cais::numeric {
HWY_EXPORT(sum_kernel);
HWY_EXPORT(target_name);

Reducer::Kernel find_sum(DType input, DType output) {
  return HWY_DYNAMIC_DISPATCH(sum_kernel)(input, output);
}

const char* instruction_set() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace cais::numeric
#endif  // HWY_ONCE
