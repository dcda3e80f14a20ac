#include "wire/tag.hpp"

#include <array>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "wire/bytes.hpp"

namespace cais::wire {

std::uint64_t tag_of(std::span<const std::byte, tagged_header_bytes> header,
                     std::uint64_t payload_digest, std::uint64_t seed) {
  std::array<std::byte, tagged_header_bytes + sizeof(payload_digest)> covered;
  std::memcpy(covered.data(), header.data(), header.size());
  store_network(covered.data() + header.size(), payload_digest);
  return XXH3_64bits_withSeed(covered.data(), covered.size(), seed);
}

}  // namespace cais::wire
