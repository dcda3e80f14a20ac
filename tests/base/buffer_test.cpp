// The bounded buffer pool: what it lends, when it gets it back, and that it never lends twice.
#include "base/buffer.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.hpp"

namespace cais {
namespace {

TEST(BufferPool, LendsAlignedBuffersThatDoNotOverlap) {
  BufferPool pool(5, 100);
  EXPECT_EQ(pool.capacity(), 5u);
  EXPECT_GE(pool.buffer_bytes(), 100u);
  std::vector<BufferRef> lent;
  std::set<std::uintptr_t> addresses;
  for (std::size_t i = 0; i < pool.capacity(); ++i) {
    lent.push_back(pool.acquire());
    ASSERT_TRUE(lent.back());
    const auto address = reinterpret_cast<std::uintptr_t>(lent.back().data());
    EXPECT_EQ(address % 64, 0u);
    addresses.insert(address);
  }
  ASSERT_EQ(addresses.size(), 5u);
  for (auto it = addresses.begin(), next = std::next(it); next != addresses.end(); ++it, ++next) {
    EXPECT_GE(*next - *it, pool.buffer_bytes());
  }
}

TEST(BufferPool, IsExhaustedAndRecovers) {
  BufferPool pool(2, 64);
  BufferRef a = pool.acquire();
  const BufferRef b = pool.acquire();
  EXPECT_EQ(pool.free_count(), 0u);
  EXPECT_FALSE(pool.acquire());
  a = {};
  EXPECT_EQ(pool.free_count(), 1u);
  EXPECT_TRUE(pool.acquire());
}

TEST(BufferPool, OfNothingLendsNothing) {
  BufferPool pool(0, 64);
  EXPECT_FALSE(pool.acquire());
}

TEST(BufferRef, KeepsTheBufferUntilTheLastIsGone) {
  BufferPool pool(1, 64);
  BufferRef first = pool.acquire();
  BufferRef second = first;
  EXPECT_EQ(first.data(), second.data());
  first = {};
  EXPECT_EQ(pool.free_count(), 0u);
  {
    const BufferRef third = std::move(second);
    EXPECT_FALSE(second);  // NOLINT(bugprone-use-after-move): a moved-from reference is empty
    EXPECT_EQ(pool.free_count(), 0u);
  }
  EXPECT_EQ(pool.free_count(), 1u);
}

TEST(BufferRef, SurvivesAssignmentToItself) {
  BufferPool pool(1, 64);
  BufferRef reference = pool.acquire();
  BufferRef& alias = reference;
  reference = alias;
  EXPECT_TRUE(reference);
  EXPECT_EQ(pool.free_count(), 0u);
}

TEST(BufferRef, CountsRightUnderRandomUse) {
  BufferPool pool(4, 64);
  Rng rng(20);
  std::vector<BufferRef> references(12);
  for (int step = 0; step < 10'000; ++step) {
    BufferRef& target = references[rng.below(references.size())];
    switch (rng.below(4)) {
      case 0:
        target = pool.acquire();
        break;
      case 1:
        target = references[rng.below(references.size())];
        break;
      case 2:
        target = std::move(references[rng.below(references.size())]);
        break;
      default:
        target = {};
    }
    std::set<std::byte*> held;
    for (const BufferRef& reference : references) {
      if (reference) held.insert(reference.data());
    }
    ASSERT_EQ(pool.free_count() + held.size(), pool.capacity());
  }
}

TEST(BufferPoolDeathTest, MustOutliveItsReferences) {
  EXPECT_DEATH(
      {
        BufferRef leaked;
        BufferPool pool(1, 64);
        leaked = pool.acquire();
      },
      "check failed");
}

}  // namespace
}  // namespace cais
