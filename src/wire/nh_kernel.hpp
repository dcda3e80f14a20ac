// wire/nh_kernel.hpp — the loop of NH over any kind of vector. Each instruction set's source names
// a vector type of its own, in an unnamed namespace: nothing made from this with its flags can be
// linked into code for another processor.
#pragma once

#include <cstring>

#include "wire/nh.hpp"

namespace cais::wire::kernel {

/// `V` has: Sums, what it adds up in, zero when value-initialised; `bytes`, those that one step
/// takes; add(sums, data, key), one step; and total(sums).
template <typename V>
NhHash nh_over(const std::byte* data, std::size_t bytes, const std::uint32_t* key) {
  constexpr std::size_t stripe_words = nh_stripe_bytes / 4;
  typename V::Sums first{};
  typename V::Sums second{};
  const auto take = [&](const std::byte* stripe, const std::uint32_t* k) {
    for (std::size_t at = 0; at < nh_stripe_bytes; at += V::bytes) {
      first = V::add(first, stripe + at, k + at / 4);
      second = V::add(second, stripe + at, k + at / 4 + stripe_words);
    }
  };
  for (; bytes >= nh_stripe_bytes; bytes -= nh_stripe_bytes) {
    take(data, key);
    data += nh_stripe_bytes;
    key += stripe_words;
  }
  if (bytes != 0) {
    alignas(nh_stripe_bytes) std::byte last[nh_stripe_bytes] = {};
    std::memcpy(last, data, bytes);
    take(last, key);
  }
  return {V::total(first), V::total(second)};
}

}  // namespace cais::wire::kernel
