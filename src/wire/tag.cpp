#include "wire/tag.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace cais::wire {

std::uint64_t tag_of(std::span<const std::byte, tagged_header_bytes> header,
                     std::span<const std::byte> payload, std::uint64_t seed) {
  const std::uint64_t head = XXH3_64bits_withSeed(header.data(), header.size(), seed);
  return XXH3_64bits_withSeed(payload.data(), payload.size(), head);
}

std::uint64_t tag_of(std::span<const std::byte, tagged_header_bytes> header,
                     std::span<const std::byte> payload, std::span<const std::byte> padding,
                     std::uint64_t seed) {
  if (padding.empty()) return tag_of(header, payload, seed);
  const std::uint64_t head = XXH3_64bits_withSeed(header.data(), header.size(), seed);
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_64bits_reset_withSeed(&state, head);
  XXH3_64bits_update(&state, payload.data(), payload.size());
  XXH3_64bits_update(&state, padding.data(), padding.size());
  return XXH3_64bits_digest(&state);
}

std::uint64_t digest(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace cais::wire
