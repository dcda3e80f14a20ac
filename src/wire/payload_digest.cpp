#include "wire/payload_digest.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"

namespace cais::wire {
namespace {

/// The block at `at` of the two pieces: where it lies when it lies in one of them, or a copy.
std::span<const std::byte> block_at(std::span<const std::byte> first,
                                    std::span<const std::byte> second, std::size_t at,
                                    std::span<std::byte, nh_block_bytes> copy) {
  const std::size_t size = std::min(first.size() + second.size() - at, nh_block_bytes);
  if (at + size <= first.size()) return first.subspan(at, size);
  if (at >= first.size()) return second.subspan(at - first.size(), size);
  const auto begin = first.subspan(at);
  const auto end = second.first(size - begin.size());
  std::copy(end.begin(), end.end(), std::copy(begin.begin(), begin.end(), copy.begin()));
  return copy.first(size);
}

}  // namespace

std::uint64_t payload_digest(std::span<const std::byte> first, std::span<const std::byte> second,
                             const PayloadKey& key) {
  const std::size_t bytes = first.size() + second.size();
  CAIS_DCHECK(bytes <= ~std::uint32_t{0});
  if (bytes == 0) return 0;
  std::array<std::byte, nh_block_bytes> copy;
  SipHash hash(key.sip);
  std::uint64_t hashed = 0;
  for (std::size_t at = 0; at < bytes; at += nh_block_bytes) {
    const NhHash block = nh(block_at(first, second, at, copy), key.nh);
    hash.add(block.first);
    hash.add(block.second);
    hashed += sizeof(block);
  }
  const auto length = static_cast<std::uint32_t>(bytes);
  return hash.finish(length | (hashed + sizeof(length)) << 56);
}

}  // namespace cais::wire
