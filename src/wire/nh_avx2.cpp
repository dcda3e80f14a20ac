// NH on 256-bit vectors.
#include <immintrin.h>

#include "wire/nh_kernel.hpp"

namespace cais::wire::kernel {
namespace {

struct Avx2 {
  using Sums = __m256i;
  static constexpr std::size_t bytes = sizeof(Sums);
  static Sums add(Sums sums, const std::byte* data, const std::uint32_t* key) {
    const __m256i m = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data));
    const __m256i k = _mm256_load_si256(reinterpret_cast<const __m256i*>(key));
    const __m256i both = _mm256_add_epi32(m, k);
    return _mm256_add_epi64(sums, _mm256_mul_epu32(both, _mm256_srli_epi64(both, 32)));
  }
  static std::uint64_t total(Sums sums) {
    alignas(Sums) std::uint64_t each[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(each), sums);
    return (each[0] + each[1]) + (each[2] + each[3]);
  }
};

}  // namespace

NhHash nh_avx2(const std::byte* data, std::size_t bytes, const std::uint32_t* key) {
  return nh_over<Avx2>(data, bytes, key);
}

}  // namespace cais::wire::kernel
