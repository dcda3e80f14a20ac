#include "wire/nh.hpp"

#include "base/check.hpp"
#include "wire/bytes.hpp"
#include "wire/nh_kernel.hpp"

namespace cais::wire {
namespace kernel {
namespace {

struct Scalar {
  using Sums = std::uint64_t;
  static constexpr std::size_t bytes = 8;
  static Sums add(Sums sums, const std::byte* data, const std::uint32_t* key) {
    const std::uint32_t low = load_little<std::uint32_t>(data) + key[0];
    const std::uint32_t high = load_little<std::uint32_t>(data + 4) + key[1];
    return sums + std::uint64_t{low} * high;
  }
  static std::uint64_t total(Sums sums) { return sums; }
};

}  // namespace

NhHash nh_baseline(const std::byte* data, std::size_t bytes, const std::uint32_t* key) {
  return nh_over<Scalar>(data, bytes, key);
}

}  // namespace kernel

namespace {

using Kernel = NhHash (*)(const std::byte*, std::size_t, const std::uint32_t*);

Kernel widest_kernel() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return kernel::nh_avx512;
  if (__builtin_cpu_supports("avx2")) return kernel::nh_avx2;
#endif
  return kernel::nh_baseline;
}

}  // namespace

NhHash nh(std::span<const std::byte> block, const NhKey& key) {
  CAIS_DCHECK(block.size() <= nh_block_bytes);
  static const Kernel widest = widest_kernel();
  return widest(block.data(), block.size(), key.words.data());
}

}  // namespace cais::wire
