#include "io/poller.hpp"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "io/clock.hpp"

namespace cais::io {
namespace {

constexpr std::size_t ready_max = 64;

timespec to_timespec(Duration duration) {
  const std::int64_t nanoseconds = duration.count();
  return timespec{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
}

}  // namespace

Result<EventSet> EventSet::open() {
  Fd fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!fd) return system_error("cannot make an epoll set");
  return EventSet(std::move(fd));
}

Result<void> EventSet::add(int fd, std::uint64_t token) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = token;
  if (::epoll_ctl(fd_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return system_error("cannot add a file descriptor to an epoll set");
  }
  return {};
}

void EventSet::want_write(int fd, std::uint64_t token, bool want) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | (want ? EPOLLOUT : 0u);
  event.data.u64 = token;
  (void)::epoll_ctl(fd_.get(), EPOLL_CTL_MOD, fd, &event);
}

void EventSet::remove(int fd) { (void)::epoll_ctl(fd_.get(), EPOLL_CTL_DEL, fd, nullptr); }

std::size_t EventSet::poll(std::span<Ready> out) {
  std::array<epoll_event, ready_max> events;
  const int wanted = static_cast<int>(std::min(out.size(), ready_max));
  const int count = ::epoll_wait(fd_.get(), events.data(), wanted, 0);
  for (int i = 0; i < count; ++i) {
    const std::uint32_t bits = events[static_cast<std::size_t>(i)].events;
    out[static_cast<std::size_t>(i)] = Ready{events[static_cast<std::size_t>(i)].data.u64,
                                             (bits & ~EPOLLOUT) != 0, (bits & EPOLLOUT) != 0};
  }
  return static_cast<std::size_t>(std::max(count, 0));
}

Result<Waker> Waker::open() {
  Fd fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!fd) return system_error("cannot make an eventfd");
  return Waker(std::move(fd));
}

void Waker::wake() {
  const std::uint64_t one = 1;
  // A full counter already wakes.
  [[maybe_unused]] const ssize_t written = ::write(fd_.get(), &one, sizeof(one));
}

void Waker::clear() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(fd_.get(), &count, sizeof(count));
}

void wait_any(std::span<pollfd> fds, Duration limit) {
  const timespec timeout = to_timespec(std::max(limit, Duration(0)));
  (void)::ppoll(fds.data(), fds.size(), limit < Duration(0) ? nullptr : &timeout, nullptr);
}

bool spin_for(pollfd fd, Duration limit) {
  const Instant end = now() + limit;
  do {
    ::sched_yield();
    if (::poll(&fd, 1, 0) > 0) return true;
  } while (now() < end);
  return false;
}

}  // namespace cais::io
