// wire/digest.hpp — XXH3-64 (Yann Collet, xxHash 0.8, seed 0), on the widest vectors that this
// processor has. All widths give the same digest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cais::wire {

std::uint64_t digest(std::span<const std::byte> bytes);

/// The digest of `first` with `second` right behind it. Slower than bytes in one piece.
std::uint64_t digest(std::span<const std::byte> first, std::span<const std::byte> second);

/// The kernels behind it, one per instruction set; for digest.cpp and its test. Those of x86-64
/// must not be called on a processor without the instructions.
namespace kernel {
std::uint64_t digest_baseline(const std::byte* data, std::size_t bytes);
std::uint64_t digest_avx2(const std::byte* data, std::size_t bytes);
std::uint64_t digest_avx512(const std::byte* data, std::size_t bytes);
}  // namespace kernel

}  // namespace cais::wire
