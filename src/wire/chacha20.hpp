// wire/chacha20.hpp — the ChaCha20 block function (Bernstein; RFC 8439, 2.3): from a secret of 256
// bits to as many others as there are nonces and counters. Keys are derived with it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cais::wire {

inline constexpr std::size_t chacha20_block_bytes = 64;

std::array<std::byte, chacha20_block_bytes> chacha20_block(
    std::span<const std::byte, 32> key, const std::array<std::uint32_t, 3>& nonce,
    std::uint32_t counter);

}  // namespace cais::wire
