// Product in rank order, for every element type.
#include "numeric/kernels/find.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/kernels/product.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numeric/kernels/arithmetic-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cais::numeric::HWY_NAMESPACE {

using Bytes = hn::ScalableTag<std::uint8_t>;

/// Lower bytes of products of bytes, which few instruction sets multiply: even and odd bytes are
/// multiplied as 16-bit lanes.
HWY_INLINE hn::Vec<Bytes> multiply_bytes(hn::Vec<Bytes> a, hn::Vec<Bytes> b) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(Bytes(), static_cast<std::uint8_t>(hn::GetLane(a) * hn::GetLane(b)));
#else
  const hn::RepartitionToWide<Bytes> wide;
  const auto upper = hn::Set(wide, 0xff00);
  const auto wide_a = hn::BitCast(wide, a);
  const auto wide_b = hn::BitCast(wide, b);
  const auto even = hn::Mul(wide_a, wide_b);  // right in its lower byte
  const auto odd = hn::Mul(hn::And(wide_a, upper), hn::ShiftRight<8>(wide_b));
  return hn::BitCast(Bytes(), hn::Or(hn::AndNot(upper, even), odd));
#endif
}

template <class Element>
struct Product {
  explicit Product(std::uint32_t /*divisor*/) {}
  template <class D>
  HWY_INLINE hn::Vec<D> enter(D, hn::Vec<D> input) const {
    return input;
  }
  template <class D>
  HWY_INLINE hn::Vec<D> combine(D, hn::Vec<D> a, hn::Vec<D> b) const {
    if constexpr (sizeof(Element) == 1) {
      return multiply_bytes(a, b);
    } else {
      return hn::Mul(a, b);
    }
  }
  template <class D>
  HWY_INLINE hn::Vec<D> leave(D, hn::Vec<D> result) const {
    return result;
  }
};

Reducer::Kernel product_kernel(DType input, DType output) {
  return arithmetic_kernel<Product>(input, output);
}

}  // namespace cais::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cais::numeric {
HWY_EXPORT(product_kernel);

Reducer::Kernel find_product(DType input, DType output) {
  return HWY_DYNAMIC_DISPATCH(product_kernel)(input, output);
}

}  // namespace cais::numeric
#endif  // HWY_ONCE
