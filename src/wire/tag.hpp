// wire/tag.hpp — the checksum of a packet: XXH3-64, seeded per session, of the header's first 32
// bytes followed by the XXH3-64 digest of the payload (docs/wire.md, "Tag"). The payload enters by
// its digest so that one pass over it serves every header that it is sent under.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cais::wire {

/// Bytes of the header that the tag covers: all that stand before it.
inline constexpr std::size_t tagged_header_bytes = 32;

std::uint64_t tag_of(std::span<const std::byte, tagged_header_bytes> header,
                     std::uint64_t payload_digest, std::uint64_t seed);

}  // namespace cais::wire
