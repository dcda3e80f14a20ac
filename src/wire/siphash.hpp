// wire/siphash.hpp — SipHash-2-4, a keyed hash that nobody tells from random without the key
// (Aumasson, Bernstein: "SipHash: a fast short-input PRF", INDOCRYPT 2012).
#pragma once

#include <bit>
#include <cstdint>

namespace cais::wire {

struct SipKey {
  std::uint64_t k0 = 0, k1 = 0;
};

/// Takes a message word by word: add() for each 8 bytes of it, finish() for what is left.
class SipHash {
 public:
  explicit constexpr SipHash(const SipKey& key)
      : v0_(key.k0 ^ 0x736f6d6570736575),
        v1_(key.k1 ^ 0x646f72616e646f6d),
        v2_(key.k0 ^ 0x6c7967656e657261),
        v3_(key.k1 ^ 0x7465646279746573) {}

  /// 8 bytes, read little-endian.
  constexpr void add(std::uint64_t word) {
    v3_ ^= word;
    round();
    round();
    v0_ ^= word;
  }

  /// `last`: the bytes behind the last whole word, and in the highest byte the length of the
  /// message mod 256.
  constexpr std::uint64_t finish(std::uint64_t last) {
    add(last);
    v2_ ^= 0xff;
    for (int i = 0; i < 4; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  constexpr void round() {
    v0_ += v1_;
    v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v1_;
    v0_ += v3_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ = std::rotl(v2_, 32);
  }

  std::uint64_t v0_, v1_, v2_, v3_;
};

}  // namespace cais::wire
