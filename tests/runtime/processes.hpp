// Ranks for tests that end some of them: each is a forked process with a communicator of its own.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/communicator.hpp"

namespace cais::runtime::testing {

class RankProcesses {
 public:
  /// Forks `ranks` processes; each runs `body` and exits with what it returns (0 to 99), or with
  /// 100 when its communicator cannot be made.
  RankProcesses(std::uint16_t ranks, Duration timeout,
                const std::function<int(Communicator&)>& body);
  ~RankProcesses();  // kills whatever is left

  pid_t pid(std::size_t rank) const { return pids_[rank]; }
  /// The exit code of the rank; -1 when it was ended by a signal or has not ended within `limit`.
  int wait(std::size_t rank, Duration limit = std::chrono::seconds(20));

 private:
  std::string directory_;
  std::vector<pid_t> pids_;
};

}  // namespace cais::runtime::testing
