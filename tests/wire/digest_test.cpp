#include "wire/digest.hpp"

#include <gtest/gtest.h>

#include "tests/wire/random_bytes.hpp"

namespace cais::wire {
namespace {

TEST(Digest, IsXxh3) {
  // The empty input of xxHash's own sanity check.
  EXPECT_EQ(digest({}), 0x2d06800538d394c2u);
}

TEST(Digest, IsTheSameOnEveryInstructionSet) {
  Rng rng(1);
  const auto bytes = random_bytes(rng, 70'000);
  for (std::size_t size = 0; size <= 70'000; size += 1 + rng.below(1 + size / 4)) {
    const auto part = std::span(bytes).first(size);
    const std::uint64_t expected = kernel::digest_baseline(part.data(), size);
    EXPECT_EQ(digest(part), expected) << size;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
      EXPECT_EQ(kernel::digest_avx2(part.data(), size), expected) << size;
    }
    if (__builtin_cpu_supports("avx512f")) {
      EXPECT_EQ(kernel::digest_avx512(part.data(), size), expected) << size;
    }
#endif
    const std::size_t cut = rng.below(size + 1);
    EXPECT_EQ(digest(part.first(cut), part.subspan(cut)), expected) << cut << " of " << size;
  }
}

}  // namespace
}  // namespace cais::wire
