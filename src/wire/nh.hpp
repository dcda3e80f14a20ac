// wire/nh.hpp — NH, the universal hash of UMAC (Black, Halevi, Krawczyk, Krovetz, Rogaway: "UMAC:
// Fast and Secure Message Authentication", CRYPTO '99; RFC 4418), with two Toeplitz iterations, on
// the widest vectors that this processor has. All widths give the same hash.
//
// With m the block's 32-bit words, zeros behind them up to a whole stripe, and k the key's:
//   first  = Σ (m[2i] + k[2i]) · (m[2i+1] + k[2i+1])            sums in brackets mod 2^32,
//   second = the same with the key from one stripe further on   those of products mod 2^64
// Two blocks of the same length that differ collide with probability 2^-64 over the keys. Blocks of
// different length may be the same to it: the length must be hashed elsewhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cais::wire {

inline constexpr std::size_t nh_block_bytes = 2048;
inline constexpr std::size_t nh_stripe_bytes = 64;  // one vector of the widest processors
static_assert(nh_block_bytes % nh_stripe_bytes == 0);

struct NhKey {
  alignas(nh_stripe_bytes) std::array<std::uint32_t, (nh_block_bytes + nh_stripe_bytes) / 4> words;
};
struct NhHash {
  std::uint64_t first, second;
};

/// `block` has at most nh_block_bytes.
NhHash nh(std::span<const std::byte> block, const NhKey& key);

/// The kernels behind it, one per instruction set; for nh.cpp and its test. Those of x86-64 must
/// not be called on a processor without the instructions.
namespace kernel {
NhHash nh_baseline(const std::byte* data, std::size_t bytes, const std::uint32_t* key);
NhHash nh_avx2(const std::byte* data, std::size_t bytes, const std::uint32_t* key);
NhHash nh_avx512(const std::byte* data, std::size_t bytes, const std::uint32_t* key);
}  // namespace kernel

}  // namespace cais::wire
