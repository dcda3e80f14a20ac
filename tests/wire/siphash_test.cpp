#include "wire/siphash.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace cais::wire {
namespace {

/// The message of the paper's appendix A: bytes 0, 1, 2 …, under the key of bytes 0 to 15.
std::uint64_t hash_of_counting(unsigned length) {
  SipHash hash({0x0706050403020100, 0x0f0e0d0c0b0a0908});
  unsigned byte = 0;
  const auto next = [&byte](unsigned bytes) {
    std::uint64_t word = 0;
    for (unsigned i = 0; i < bytes; ++i) word |= std::uint64_t{byte++} << 8 * i;
    return word;
  };
  for (unsigned word = 0; word < length / 8; ++word) hash.add(next(8));
  return hash.finish(next(length % 8) | std::uint64_t{length} << 56);
}

TEST(SipHash, IsThatOfThePaperAndItsReferenceCode) {
  const std::pair<unsigned, std::uint64_t> published[] = {
      {0, 0x726fdb47dd0e0e31},  {1, 0x74f839c593dc67fd},  {2, 0x0d6c8009d9a94f5a},
      {3, 0x85676696d7fb7e2d},  {4, 0xcf2794e0277187b7},  {5, 0x18765564cd99a68d},
      {6, 0xcbc9466e58fee3ce},  {7, 0xab0200f58b01d137},  {8, 0x93f5f5799a932462},
      {15, 0xa129ca6149be45e5}, {63, 0x958a324ceb064572},
  };
  for (const auto& [length, expected] : published) {
    EXPECT_EQ(hash_of_counting(length), expected) << length;
  }
}

}  // namespace
}  // namespace cais::wire
