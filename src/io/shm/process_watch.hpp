// io/shm/process_watch.hpp — whether other processes are still alive. A pidfd turns readable when
// its process ends, however it ends, also where children that it forked live on (they would hold a
// socket open), and it can be passed to a process that cannot see the pid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "io/fd.hpp"

namespace cais::io {

/// A pidfd of the calling process, to be sent to whoever watches it (Linux 5.3).
Result<Fd> own_pidfd();

class ProcessWatch {
 public:
  ProcessWatch() = default;
  /// Watches the processes behind `pidfds`; an empty Fd stands for one that is not watched.
  explicit ProcessWatch(std::vector<Fd> pidfds) : pidfds_(std::move(pidfds)) {}
  /// Index of a process that has ended, of those whose bit is not set in `ignored`. Does not wait.
  std::optional<std::size_t> find_dead(std::uint64_t ignored) const;

 private:
  std::vector<Fd> pidfds_;
};

}  // namespace cais::io
