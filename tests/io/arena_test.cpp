// The arena as an allocator, and the ranges that it keeps.
#include "io/shm/arena.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <thread>

#include "base/rng.hpp"

namespace cais::io {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::unique_ptr<Arena> make(std::size_t bytes_max, std::size_t cached_bytes_max = mib) {
  auto arena = Arena::create(bytes_max, cached_bytes_max);
  CAIS_CHECK(arena.ok());
  return std::move(arena).value();
}

std::size_t resident_bytes(const Arena& arena) {
  struct stat status {};
  CAIS_CHECK(fstat(arena.fd(), &status) == 0);
  return static_cast<std::size_t>(status.st_blocks) * 512;
}

bool all_are(const void* memory, std::size_t bytes, unsigned char value) {
  const auto* begin = static_cast<const unsigned char*>(memory);
  return std::all_of(begin, begin + bytes, [&](unsigned char byte) { return byte == value; });
}

TEST(RangeSet, RangesJoinWhereTheyTouch) {
  RangeSet set;
  set.insert({0, 10});
  set.insert({20, 10});
  set.insert({10, 10});
  std::vector<Range> ranges;
  set.for_each([&](Range range) { ranges.push_back(range); });
  EXPECT_THAT(ranges, testing::ElementsAre(Range{0, 30}));
  EXPECT_EQ(set.bytes(), 30u);
}

TEST(RangeSet, TheSmallestRangeThatFitsIsTaken) {
  RangeSet set;
  set.insert({0, 100});
  set.insert({200, 20});
  EXPECT_EQ(set.take(15), (Range{200, 15}));
  EXPECT_EQ(set.take(15), (Range{0, 15}));
  EXPECT_EQ(set.take(86), std::nullopt);
  EXPECT_EQ(set.take_largest(), (Range{15, 85}));
  EXPECT_EQ(set.bytes(), 5u);
}

TEST(Arena, BlocksAreAlignedApartAndWritable) {
  const auto arena = make(64 * mib);
  std::map<std::byte*, std::size_t> blocks;
  for (const std::size_t bytes : {1ul, 4096ul, 4097ul, 100'000ul, 1'000'000ul, 0ul}) {
    auto* block = static_cast<std::byte*>(arena->allocate(bytes));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % arena_block_bytes, 0u);
    std::memset(block, 7, bytes);
    blocks.emplace(block, bytes);
  }
  const std::byte* end = nullptr;
  for (const auto& [block, bytes] : blocks) {
    EXPECT_GE(block, end);
    end = block + bytes;
  }
  for (const auto& [block, bytes] : blocks) arena->deallocate(block);
  EXPECT_EQ(arena->stats().blocks, 0u);
  EXPECT_EQ(arena->stats().allocated_bytes, 0u);
}

TEST(Arena, PeersFindABlockAtItsOffsetInTheFile) {
  const auto arena = make(16 * mib);
  arena->allocate(5000);
  auto* block = static_cast<std::byte*>(arena->allocate(100'000));
  std::memset(block, 42, 100'000);
  const std::optional<std::size_t> offset = arena->offset_of(block + 10, 99'000);
  ASSERT_TRUE(offset.has_value());
  void* peer = mmap(nullptr, arena->capacity(), PROT_READ, MAP_SHARED, arena->fd(), 0);
  ASSERT_NE(peer, MAP_FAILED);
  EXPECT_TRUE(all_are(static_cast<std::byte*>(peer) + *offset, 99'000, 42));
  munmap(peer, arena->capacity());
}

TEST(Arena, MemoryOfOthersHasNoOffset) {
  const auto arena = make(mib);
  int other = 0;
  EXPECT_EQ(arena->offset_of(&other, sizeof other), std::nullopt);
  EXPECT_EQ(arena->offset_of(arena->base() - 1, 1), std::nullopt);
  EXPECT_EQ(arena->offset_of(arena->base() + mib, 1), std::nullopt);
  EXPECT_EQ(arena->offset_of(arena->base() + mib - 10, 11), std::nullopt);
  EXPECT_EQ(arena->offset_of(arena->base() + 10, ~std::size_t{0}), std::nullopt);
  EXPECT_EQ(arena->offset_of(arena->base() + mib - 10, 10), mib - 10);
}

TEST(Arena, NullWhenTheAddressSpaceIsUsedUpAndServedAgainAfterAFree) {
  const auto arena = make(4 * mib);
  void* a = arena->allocate(2 * mib);
  void* b = arena->allocate(2 * mib);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(arena->allocate(1), nullptr);
  EXPECT_EQ(arena->allocate(~std::size_t{0}), nullptr);
  arena->deallocate(a);
  arena->deallocate(b);
  EXPECT_NE(arena->allocate(4 * mib), nullptr);  // cached and returned pages grew together
}

TEST(Arena, ZeroedMemoryIsZeroAlsoWhereAnotherBlockStood) {
  const auto arena = make(16 * mib, 16 * mib);
  void* a = arena->allocate(mib);
  std::memset(a, 255, mib);
  arena->deallocate(a);
  void* b = arena->allocate_zeroed(mib);
  EXPECT_EQ(a, b);  // the cached pages serve again
  EXPECT_TRUE(all_are(b, mib, 0));
}

TEST(Arena, FreedMemoryBeyondTheCacheGoesBackToTheKernel) {
  const auto arena = make(64 * mib, 4 * mib);
  std::vector<void*> blocks;
  for (int i = 0; i < 16; ++i) {
    blocks.push_back(arena->allocate(mib));
    std::memset(blocks.back(), 1, mib);
  }
  EXPECT_GE(resident_bytes(*arena), 16 * mib);
  for (void* block : blocks) arena->deallocate(block);
  EXPECT_LE(resident_bytes(*arena), 4 * mib);
  EXPECT_LE(arena->stats().cached_bytes, 4 * mib);
  void* block = arena->allocate_zeroed(32 * mib);
  EXPECT_TRUE(all_are(block, 32 * mib, 0));
}

TEST(Arena, NothingOfItStandsInAFileSystem) {
  const auto arena = make(mib);
  struct stat status {};
  ASSERT_EQ(fstat(arena->fd(), &status), 0);
  EXPECT_EQ(status.st_nlink, 0u);
}

TEST(Arena, ASizeThatTheKernelRefusesIsAnErrorThatSaysWhatToDo) {
  const auto arena = Arena::create(std::size_t{1} << 62);
  ASSERT_FALSE(arena.ok());
  EXPECT_THAT(arena.error().message, testing::HasSubstr("CAIS_ARENA_MAX_BYTES"));
}

TEST(ArenaDeathTest, ABlockThatIsFreedTwiceStopsTheProcess) {
  const auto arena = make(mib);
  void* block = arena->allocate(10);
  arena->deallocate(block);
  EXPECT_DEATH(arena->deallocate(block), "check failed");
}

// Random allocations and frees; each block carries its own pattern, so that overlap shows.
void churn(Arena& arena, std::uint64_t seed, int steps) {
  Rng rng(seed);
  struct Held {
    void* memory;
    std::size_t bytes;
    unsigned char value;
  };
  std::vector<Held> held;
  for (int step = 0; step < steps; ++step) {
    if (held.size() < 20 && rng.chance(0.55)) {
      const std::size_t bytes = 1 + rng.below(rng.chance(0.1) ? 2 * mib : 40'000);
      const auto value = static_cast<unsigned char>(rng.next());
      const bool zeroed = rng.chance(0.3);
      void* memory = zeroed ? arena.allocate_zeroed(bytes) : arena.allocate(bytes);
      ASSERT_NE(memory, nullptr);
      ASSERT_TRUE(!zeroed || all_are(memory, bytes, 0)) << "seed " << seed << " step " << step;
      std::memset(memory, value, bytes);
      held.push_back({memory, bytes, value});
    } else if (!held.empty()) {
      std::swap(held[rng.below(held.size())], held.back());
      ASSERT_TRUE(all_are(held.back().memory, held.back().bytes, held.back().value))
          << "seed " << seed << " step " << step;
      arena.deallocate(held.back().memory);
      held.pop_back();
    }
  }
  for (const Held& block : held) arena.deallocate(block.memory);
}

TEST(Arena, RandomUseByManyThreadsKeepsEveryBlockApart) {
  const auto arena = make(512 * mib, 8 * mib);
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&arena, seed] { churn(*arena, seed, 2000); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(arena->stats().blocks, 0u);
  EXPECT_NE(arena->allocate(512 * mib), nullptr);
}

TEST(Arena, TheProcessHasOne) {
  ASSERT_NE(process_arena(), nullptr);
  EXPECT_EQ(process_arena(), process_arena(mib));
}

}  // namespace
}  // namespace cais::io
