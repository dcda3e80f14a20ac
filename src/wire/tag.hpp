// wire/tag.hpp — the tag of a packet: of the header's first 32 bytes followed by the digest of the
// payload and, keyed, the round of its seq (docs/wire.md, "Tag"). The payload enters by its digest
// so that one pass over it serves every header that it is sent under.
//
//   Tags::keyed     SipHash-2-4 under the sender's key; the digest is the keyed one
//   Tags::checksum  XXH3-64 with the session's seed; the digest is XXH3-64
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/keys.hpp"

namespace cais::wire {

/// Bytes of the header that the tag covers: all that stand before it.
inline constexpr std::size_t tagged_header_bytes = 32;

/// The payload may lie in two pieces. Which key it is follows from the header: it says who sends.
/// `round` is that of the header's seq; a checksum does not cover it. Nothing: `keys` lack the key.
std::optional<std::uint64_t> tag_of(std::span<const std::byte, tagged_header_bytes> header,
                                    std::span<const std::byte> payload,
                                    std::span<const std::byte> rest_of_payload, const Keys& keys,
                                    Round round);

}  // namespace cais::wire
