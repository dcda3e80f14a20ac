// io/poller.hpp — waiting: for many slow file descriptors (EventSet, epoll), for a call from
// another thread (Waker, eventfd), and for the first of a few of them (wait_any, ppoll).
#pragma once

#include <poll.h>

#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "base/time.hpp"
#include "io/fd.hpp"

namespace cais::io {

/// A level-triggered set of file descriptors, itself waitable through fd().
class EventSet {
 public:
  struct Ready {
    std::uint64_t token;
    bool readable;  // also: broken or closed, which a read will tell
    bool writable;
  };

  static Result<EventSet> open();
  Result<void> add(int fd, std::uint64_t token);
  /// Whether the set should also tell when `fd` can be written.
  void want_write(int fd, std::uint64_t token, bool want);
  void remove(int fd);

  /// Fills `out` without waiting; returns how many.
  std::size_t poll(std::span<Ready> out);
  int fd() const { return fd_.get(); }

 private:
  explicit EventSet(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

/// Wakes a thread that waits for fd(). `wake` may be called from any thread.
class Waker {
 public:
  static Result<Waker> open();
  void wake();
  void clear();
  int fd() const { return fd_.get(); }

 private:
  explicit Waker(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

/// Waits until one of `fds` is ready or `limit` has passed; negative: no limit.
void wait_any(std::span<pollfd> fds, Duration limit);

/// The same for one of them, without sleeping: a wake-up costs more than a small packet. Others get
/// the core meanwhile. Whether it is ready.
bool spin_for(pollfd fd, Duration limit);

}  // namespace cais::io
