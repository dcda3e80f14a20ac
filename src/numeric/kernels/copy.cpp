// A copy with non-temporal stores, which need a target aligned to the vector.
#include "numeric/copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/kernels/copy.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cais::numeric::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void copy_past_cache(std::byte* to, const std::byte* from, std::size_t bytes) {
  const hn::ScalableTag<std::uint8_t> lanes;
  constexpr std::size_t vector_bytes = hn::MaxLanes(lanes);
  constexpr std::size_t block = 4 * vector_bytes;
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(to) % vector_bytes;
  const std::size_t head = std::min((vector_bytes - offset) % vector_bytes, bytes);
  std::memcpy(to, from, head);
  std::size_t at = head;
  for (; bytes - at >= block; at += block) {
    const auto* source = reinterpret_cast<const std::uint8_t*>(from + at);
    auto* target = reinterpret_cast<std::uint8_t*>(to + at);
    const auto a = hn::LoadU(lanes, source);
    const auto b = hn::LoadU(lanes, source + vector_bytes);
    const auto c = hn::LoadU(lanes, source + 2 * vector_bytes);
    const auto d = hn::LoadU(lanes, source + 3 * vector_bytes);
    hn::Stream(a, lanes, target);
    hn::Stream(b, lanes, target + vector_bytes);
    hn::Stream(c, lanes, target + 2 * vector_bytes);
    hn::Stream(d, lanes, target + 3 * vector_bytes);
  }
  std::memcpy(to + at, from + at, bytes - at);
  hwy::FlushStream();
}

}  // namespace cais::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cais::numeric {
HWY_EXPORT(copy_past_cache);

void copy_stream(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes == 0) return;  // memcpy does not take null pointers for nothing
  HWY_DYNAMIC_DISPATCH(copy_past_cache)(to, from, bytes);
}

}  // namespace cais::numeric
#endif  // HWY_ONCE
