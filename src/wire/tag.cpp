#include "wire/tag.hpp"

#include <array>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "wire/bytes.hpp"
#include "wire/digest.hpp"
#include "wire/header.hpp"

namespace cais::wire {
namespace {

using TaggedHeader = std::span<const std::byte, tagged_header_bytes>;

std::uint64_t checksum(TaggedHeader header, std::uint64_t payload_digest, std::uint64_t seed) {
  std::array<std::byte, tagged_header_bytes + sizeof(payload_digest)> covered;
  std::memcpy(covered.data(), header.data(), header.size());
  store_network(covered.data() + header.size(), payload_digest);
  return XXH3_64bits_withSeed(covered.data(), covered.size(), seed);
}

std::uint64_t keyed_tag(TaggedHeader header, std::uint64_t payload_digest, const SipKey& key,
                        Round round) {
  SipHash hash(key);
  for (std::size_t at = 0; at < header.size(); at += 8) {
    hash.add(load_little<std::uint64_t>(header.data() + at));
  }
  hash.add(payload_digest);
  constexpr std::uint64_t length = header.size() + sizeof(payload_digest) + sizeof(round.value);
  return hash.finish(length << 56 | round.value);
}

/// Ranks speak at level 0, and switches to ranks; above, whatever its kind, it is one switch that
/// speaks to the next.
const SipKey* key_of_sender(TaggedHeader header, const Keys& keys) {
  if ((header[level_at] & std::byte{level_mask}) != std::byte{}) return keys.of_children();
  if (!sent_by_rank(static_cast<Kind>(header[kind_at]))) return &keys.of_switches();
  return keys.of_rank(Rank(load_network<std::uint16_t>(header.data() + rank_at)));
}

}  // namespace

std::optional<std::uint64_t> tag_of(TaggedHeader header, std::span<const std::byte> payload,
                                    std::span<const std::byte> rest_of_payload, const Keys& keys,
                                    Round round) {
  if (!keys) return std::nullopt;
  if (keys.tags() == Tags::checksum) {
    return checksum(header, digest(payload, rest_of_payload), keys.seed());
  }
  const SipKey* const key = key_of_sender(header, keys);
  if (key == nullptr) return std::nullopt;
  return keyed_tag(header, payload_digest(payload, rest_of_payload, keys.of_payloads()), *key,
                   round);
}

}  // namespace cais::wire
