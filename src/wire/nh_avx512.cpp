// NH on 512-bit vectors: a stripe is one of them.
#include <immintrin.h>

#include <iterator>
#include <numeric>

#include "wire/nh_kernel.hpp"

namespace cais::wire::kernel {
namespace {

struct Avx512 {
  using Sums = __m512i;
  static constexpr std::size_t bytes = sizeof(Sums);
  static Sums add(Sums sums, const std::byte* data, const std::uint32_t* key) {
    const __m512i both = _mm512_add_epi32(_mm512_loadu_si512(data), _mm512_load_si512(key));
    return _mm512_add_epi64(sums, _mm512_mul_epu32(both, _mm512_srli_epi64(both, 32)));
  }
  static std::uint64_t total(Sums sums) {
    // _mm512_reduce_add_epi64 adds signed numbers in GCC's headers: they may not overflow.
    alignas(bytes) std::uint64_t lanes[bytes / sizeof(std::uint64_t)];
    _mm512_store_si512(lanes, sums);
    return std::accumulate(std::begin(lanes), std::end(lanes), std::uint64_t{0});
  }
};

}  // namespace

NhHash nh_avx512(const std::byte* data, std::size_t bytes, const std::uint32_t* key) {
  return nh_over<Avx512>(data, bytes, key);
}

}  // namespace cais::wire::kernel
