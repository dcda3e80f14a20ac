#include "io/shm/process_watch.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace cais::io {

Result<Fd> own_pidfd() {
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!fd) return system_error("cannot watch processes (pidfd_open; Linux 5.3 or newer is needed)");
  return fd;
}

std::optional<std::size_t> ProcessWatch::find_dead(std::uint64_t ignored) const {
  std::vector<pollfd> polls;
  polls.reserve(pidfds_.size());
  for (std::size_t i = 0; i < pidfds_.size(); ++i) {
    polls.push_back({(ignored >> i & 1) != 0 ? -1 : pidfds_[i].get(), POLLIN, 0});
  }
  if (::poll(polls.data(), polls.size(), 0) <= 0) return std::nullopt;
  for (std::size_t i = 0; i < polls.size(); ++i) {
    if ((polls[i].revents & POLLIN) != 0) return i;
  }
  return std::nullopt;
}

}  // namespace cais::io
