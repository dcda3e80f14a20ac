#include "wire/digest.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace cais::wire {
namespace kernel {

std::uint64_t digest_baseline(const std::byte* data, std::size_t bytes) {
  return XXH3_64bits(data, bytes);
}

}  // namespace kernel

namespace {

using Kernel = std::uint64_t (*)(const std::byte*, std::size_t);

Kernel widest_kernel() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return kernel::digest_avx512;
  if (__builtin_cpu_supports("avx2")) return kernel::digest_avx2;
#endif
  return kernel::digest_baseline;
}

// XXH3 works on scalars up to this length, whatever the processor.
constexpr std::size_t scalar_bytes_max = 240;

}  // namespace

std::uint64_t digest(std::span<const std::byte> bytes) {
  if (bytes.size() <= scalar_bytes_max) return XXH3_64bits(bytes.data(), bytes.size());
  static const Kernel widest = widest_kernel();
  return widest(bytes.data(), bytes.size());
}

std::uint64_t digest(std::span<const std::byte> first, std::span<const std::byte> second) {
  if (second.empty()) return digest(first);
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, first.data(), first.size());
  XXH3_64bits_update(&state, second.data(), second.size());
  return XXH3_64bits_digest(&state);
}

}  // namespace cais::wire
