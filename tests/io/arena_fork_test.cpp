// The arena and fork(): a child's writes never reach its parent, and its arena goes on working.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "io/shm/arena.hpp"

namespace cais::io {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

// Runs `body` in a child; true when it returned true. A child that hangs ends by its alarm.
bool in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  CAIS_CHECK(child >= 0);
  if (child == 0) {
    alarm(30);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  CAIS_CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// In one call: under ThreadSanitizer a loop over the bytes takes longer than a child may.
bool all_are(const void* memory, std::size_t bytes, unsigned char value) {
  const auto* begin = static_cast<const unsigned char*>(memory);
  return *begin == value && std::memcmp(begin, begin + 1, bytes - 1) == 0;
}

// Below the limit the child has a snapshot; above, it shares pages until it writes.
class ArenaFork : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    auto made = Arena::create(1024 * mib, 64 * mib);
    ASSERT_TRUE(made.ok());
    arena_ = std::move(made).value();
    before_ = take(100'000, 1);
    block_ = take(GetParam(), 2);
    after_ = take(8192, 3);
  }
  unsigned char* take(std::size_t bytes, unsigned char value) {
    auto* block = static_cast<unsigned char*>(arena_->allocate(bytes));
    std::memset(block, value, bytes);
    return block;
  }
  bool snapshot() const { return GetParam() <= fork_snapshot_bytes_max / 2; }

  std::unique_ptr<Arena> arena_;
  unsigned char* before_ = nullptr;
  unsigned char* block_ = nullptr;
  unsigned char* after_ = nullptr;
};

TEST_P(ArenaFork, AChildReadsItsParentsDataAndItsWritesNeverReachTheParent) {
  EXPECT_TRUE(in_child([&] {
    const bool reads =
        all_are(before_, 100'000, 1) && all_are(block_, GetParam(), 2) && all_are(after_, 8192, 3);
    std::memset(before_, 9, 100'000);
    std::memset(block_, 9, GetParam());
    std::memset(after_, 9, 8192);
    return reads && all_are(block_, GetParam(), 9);
  }));
  EXPECT_TRUE(all_are(before_, 100'000, 1));
  EXPECT_TRUE(all_are(block_, GetParam(), 2));
  EXPECT_TRUE(all_are(after_, 8192, 3));
}

TEST_P(ArenaFork, AChildsWritesDoNotReachAPeerThatMapsTheFile) {
  const std::size_t offset = *arena_->offset_of(block_, GetParam());
  void* peer = mmap(nullptr, arena_->capacity(), PROT_READ, MAP_SHARED, arena_->fd(), 0);
  ASSERT_NE(peer, MAP_FAILED);
  EXPECT_TRUE(in_child([&] {
    std::memset(block_, 9, GetParam());
    return true;
  }));
  EXPECT_TRUE(all_are(static_cast<unsigned char*>(peer) + offset, GetParam(), 2));
  munmap(peer, arena_->capacity());
}

TEST_P(ArenaFork, AChildsArenaIsDetachedAndGoesOnWorking) {
  void* freed = arena_->allocate(mib);
  std::memset(freed, 8, mib);
  arena_->deallocate(freed);
  const ArenaStats stats = arena_->stats();
  EXPECT_TRUE(in_child([&] {
    if (!arena_->detached() || arena_->offset_of(block_, 1)) return false;
    arena_->deallocate(block_);
    for (int round = 0; round < 3; ++round) {
      std::vector<void*> blocks;
      for (int i = 0; i < 40; ++i) {
        blocks.push_back(arena_->allocate_zeroed(3 * mib));
        if (blocks.back() == nullptr || !all_are(blocks.back(), 3 * mib, 0)) return false;
        std::memset(blocks.back(), 5, 3 * mib);
      }
      for (void* block : blocks) arena_->deallocate(block);
    }
    return all_are(before_, 100'000, 1) && all_are(after_, 8192, 3);
  }));
  EXPECT_EQ(arena_->stats().blocks, stats.blocks);
  EXPECT_TRUE(all_are(block_, GetParam(), 2));
  EXPECT_FALSE(arena_->detached());
}

TEST_P(ArenaFork, AGrandchildsWritesReachNobody) {
  EXPECT_TRUE(in_child([&] {
    block_[0] = 50;
    auto* own = static_cast<unsigned char*>(arena_->allocate(8192));
    std::memset(own, 60, 8192);
    const bool grandchild = in_child([&] {
      const bool reads = block_[0] == 50 && block_[1] == 2 && all_are(own, 8192, 60);
      std::memset(block_, 70, 8192);
      std::memset(own, 70, 8192);
      arena_->deallocate(own);
      void* another = arena_->allocate_zeroed(mib);
      return reads && another != nullptr && all_are(another, mib, 0);
    });
    return grandchild && block_[0] == 50 && block_[1] == 2 && all_are(own, 8192, 60);
  }));
  EXPECT_TRUE(all_are(block_, GetParam(), 2));
}

TEST_P(ArenaFork, WhatTheParentWritesLaterShowsInAChildOnlyWithoutASnapshot) {
  int written[2];
  ASSERT_EQ(pipe(written), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    char byte = 0;
    if (read(written[0], &byte, 1) != 1) _exit(2);
    _exit(block_[0]);
  }
  block_[0] = 77;
  ASSERT_EQ(write(written[1], "x", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  close(written[0]);
  close(written[1]);
  EXPECT_EQ(WEXITSTATUS(status), snapshot() ? 2 : 77);
}

TEST_P(ArenaFork, ForksWhileOtherThreadsAllocate) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        void* block = arena_->allocate(50'000);
        std::memset(block, 1, 4096);
        arena_->deallocate(block);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(in_child([&] {
      void* block = arena_->allocate_zeroed(mib);
      if (block == nullptr || !all_are(block, mib, 0)) return false;
      arena_->deallocate(block);
      return block_[GetParam() - 1] == 2;
    }));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(arena_->stats().blocks, 3u);
}

INSTANTIATE_TEST_SUITE_P(SnapshotAndShared, ArenaFork, testing::Values(mib, 80 * mib),
                         [](const auto& test) {
                           return test.param == mib ? "Snapshot" : "Shared";
                         });

TEST(ArenaForkMany, ManyBlocksWithGapsKeepTheirDataInTheChild) {
  auto arena = std::move(Arena::create(4096 * mib)).value();
  std::vector<unsigned char*> blocks;
  std::vector<void*> between;
  for (int i = 0; i < 300; ++i) {  // 75 MB in 300 blocks, gaps of 4 KB to 8 MB between them
    blocks.push_back(static_cast<unsigned char*>(arena->allocate(mib / 4)));
    std::memset(blocks.back(), i % 251, mib / 4);
    between.push_back(arena->allocate(std::size_t{4096} << (i % 12)));
  }
  for (void* gap : between) arena->deallocate(gap);
  EXPECT_TRUE(in_child([&] {
    for (int i = 0; i < 300; ++i) {
      if (!all_are(blocks[i], mib / 4, static_cast<unsigned char>(i % 251))) return false;
      std::memset(blocks[i], 255, mib / 4);
    }
    return true;
  }));
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(all_are(blocks[i], mib / 4, static_cast<unsigned char>(i % 251)));
  }
}

TEST(ArenaForkMany, AnEmptyArenaServesTheChildToo) {
  auto arena = std::move(Arena::create(64 * mib)).value();
  void* block = arena->allocate(mib);
  std::memset(block, 3, mib);
  arena->deallocate(block);
  EXPECT_TRUE(in_child([&] {
    void* own = arena->allocate_zeroed(64 * mib);
    return own != nullptr && all_are(own, mib, 0);
  }));
}

}  // namespace
}  // namespace cais::io
