// wire/tag.hpp — the checksum of a packet (docs/wire.md, "Tag"): XXH3-64 of the header, then of the
// payload with the header's digest as its seed. The payload's digest is that of its bytes in one
// piece, wherever the sender kept them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cais::wire {

/// Bytes of the header that the tag covers: all that stand before it.
inline constexpr std::size_t tagged_header_bytes = 32;

std::uint64_t tag_of(std::span<const std::byte, tagged_header_bytes> header,
                     std::span<const std::byte> payload, std::uint64_t seed);

/// The same for a payload that lies in two pieces.
std::uint64_t tag_of(std::span<const std::byte, tagged_header_bytes> header,
                     std::span<const std::byte> payload, std::span<const std::byte> padding,
                     std::uint64_t seed);

/// XXH3-64 of any bytes, seed 0.
std::uint64_t digest(std::span<const std::byte> bytes);

}  // namespace cais::wire
