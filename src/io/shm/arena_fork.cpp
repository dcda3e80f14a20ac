// io/shm/arena_fork.cpp — what becomes of the arena in a child process (see arena.hpp, "Fork").
#include "io/shm/arena_fork.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "base/check.hpp"
#include "io/shm/arena.hpp"

namespace cais::io {
namespace {

// Free gaps shorter than this stay part of the view that is shared until written: it bounds the
// number of mappings that a child needs (the kernel allows 65,530).
constexpr std::size_t gap_bytes_min = std::size_t{4} << 20;

constexpr int private_zeros = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;

}  // namespace

// The handlers are the process's, so the list of arenas is too. It is never destroyed: a process
// may fork while its static objects are torn down.
class ArenaForkHandlers {
 public:
  static ArenaForkHandlers& instance() {
    static auto* const handlers = new ArenaForkHandlers;
    return *handlers;
  }
  void add(Arena& arena) {
    const std::lock_guard lock(mutex_);
    arenas_.push_back(&arena);
  }
  void remove(Arena& arena) {
    const std::lock_guard lock(mutex_);
    std::erase(arenas_, &arena);
  }

 private:
  ArenaForkHandlers() { CAIS_CHECK(pthread_atfork(before, after_in_parent, after_in_child) == 0); }

  static void before() {
    instance().mutex_.lock();
    for (Arena* arena : instance().arenas_) arena->before_fork();
  }
  static void after_in_parent() {
    for (Arena* arena : instance().arenas_) arena->after_fork_in_parent();
    instance().mutex_.unlock();
  }
  static void after_in_child() {
    for (Arena* arena : instance().arenas_) arena->after_fork_in_child();
    instance().mutex_.unlock();
  }

  std::mutex mutex_;
  std::vector<Arena*> arenas_;
};

void follow_forks(Arena& arena) { ArenaForkHandlers::instance().add(arena); }
void unfollow_forks(Arena& arena) { ArenaForkHandlers::instance().remove(arena); }

void Arena::before_fork() {
  mutex_.lock();
  if (!detached() && used_bytes_ > 0 && used_bytes_ <= fork_snapshot_bytes_max) take_snapshot();
}

void Arena::after_fork_in_parent() {
  if (snapshot_ != nullptr) munmap(snapshot_, used_end_);
  snapshot_ = nullptr;
  mutex_.unlock();
}

// A detached arena is private memory already: the kernel gives the child its own copy.
void Arena::after_fork_in_child() {
  if (!detached()) {
    if (snapshot_ != nullptr) {
      adopt_snapshot();
    } else {
      share_until_written();
    }
    close(fd_);
    fd_ = -1;
  }
  mutex_.unlock();
}

// The copy has the arena's layout, so that the child can move it into place in one piece.
void Arena::take_snapshot() {
  void* area = mmap(nullptr, used_end_, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (area == MAP_FAILED) return;  // the child shares until it writes
  snapshot_ = static_cast<std::byte*>(area);
  for (const auto& [offset, bytes] : used_) std::memcpy(snapshot_ + offset, base_ + offset, bytes);
}

bool Arena::map_private_zeros(Range range) {
  return mmap(base_ + range.offset, range.bytes, PROT_READ | PROT_WRITE, private_zeros, -1, 0) !=
         MAP_FAILED;
}

// Free memory of the child: private zeros, or out of reach where the kernel promises no more memory
// (vm.overcommit_memory = 2).
void Arena::add_private_free(Range range) {
  if (range.bytes == 0) return;
  if (map_private_zeros(range)) {
    clean_.insert(range);
  } else {
    CAIS_CHECK(mmap(base_ + range.offset, range.bytes, PROT_NONE, private_zeros, -1, 0) !=
               MAP_FAILED);
  }
}

void Arena::adopt_snapshot() {
  // A child that could not have a view of its own must not run: it would write into its parent.
  CAIS_CHECK(mremap(snapshot_, used_end_, used_end_, MREMAP_MAYMOVE | MREMAP_FIXED, base_) ==
             base_);
  snapshot_ = nullptr;
  dirty_ = RangeSet();
  clean_ = RangeSet();
  std::size_t end = 0;
  for (const Range& range : used_ranges()) {
    if (range.offset > end) clean_.insert({end, range.offset - end});
    end = range.end();
  }
  if (used_end_ > end) clean_.insert({end, used_end_ - end});
  add_private_free({used_end_, capacity_ - used_end_});
}

void Arena::share_until_written() {
  dirty_ = RangeSet();
  clean_ = RangeSet();
  const std::vector<Range> used = used_ranges();
  std::size_t end = 0;
  for (std::size_t i = 0; i < used.size();) {
    Range shared = used[i];
    while (++i < used.size() && used[i].offset - shared.end() < gap_bytes_min) {
      if (used[i].offset > shared.end()) {
        dirty_.insert({shared.end(), used[i].offset - shared.end()});
      }
      shared.bytes = used[i].end() - shared.offset;
    }
    add_private_free({end, shared.offset - end});
    CAIS_CHECK(mmap(base_ + shared.offset, shared.bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, fd_,
                    static_cast<off_t>(shared.offset)) != MAP_FAILED);
    end = shared.end();
  }
  add_private_free({end, capacity_ - end});
}

}  // namespace cais::io
