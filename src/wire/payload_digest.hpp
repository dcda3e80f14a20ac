// wire/payload_digest.hpp — the digest by which a payload enters a keyed tag: NH of each block, and
// SipHash-2-4 of those and the length (docs/wire.md, "Tag"). Whoever does not know the key finds no
// two payloads with the same digest but by luck, 2^-63 for each pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/nh.hpp"
#include "wire/siphash.hpp"

namespace cais::wire {

struct PayloadKey {
  NhKey nh;
  SipKey sip;
};

/// Of `first` with `second` right behind it: of their bytes alone, wherever they are cut. 0 of
/// none.
std::uint64_t payload_digest(std::span<const std::byte> first, std::span<const std::byte> second,
                             const PayloadKey& key);

}  // namespace cais::wire
