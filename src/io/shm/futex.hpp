// io/shm/futex.hpp — sleeping on a word of memory that processes share, and waking the sleepers.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

#include "base/time.hpp"

namespace cais::io {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "the kernel reads the bare word");

/// Sleeps while `word` is `seen`, `limit` at most. May return early, for no reason.
inline void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen, Duration limit) {
  const timespec time{limit.count() / 1'000'000'000, limit.count() % 1'000'000'000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

inline void futex_wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace cais::io
