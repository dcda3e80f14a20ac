// Ranks as processes, for tests in which one of them is killed.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "runtime/tcp_rendezvous.hpp"
#include "tests/runtime/udp/group.hpp"

namespace cais::runtime {

/// Where processes that were forked later meet: nobody passes before all have come. What a rank is
/// told to be done may still be on its way to the others, and a rank that dies must not take it
/// along.
class MeetingPoint {
 public:
  MeetingPoint()
      : come_(static_cast<std::atomic<int>*>(::mmap(nullptr, sizeof(*come_), PROT_READ | PROT_WRITE,
                                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    if (come_ == MAP_FAILED) std::abort();
  }
  ~MeetingPoint() { ::munmap(come_, sizeof(*come_)); }
  MeetingPoint(const MeetingPoint&) = delete;
  MeetingPoint& operator=(const MeetingPoint&) = delete;

  void meet(int all) {
    ++*come_;
    while (*come_ < all) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  std::atomic<int>* come_;  // zeros are a valid one
  static_assert(std::atomic<int>::is_always_lock_free);
};

/// Forks one process for each rank; the test fails when one of them fails. A rank may end by
/// SIGKILL: whoever looks at the others says whether that was meant. The caller has no threads.
inline void with_processes(const GroupOptions& options,
                           const std::function<void(TestRank&)>& body) {
  const std::string store = "127.0.0.1:" + std::to_string(20'000 + ::getpid() % 30'000);
  std::vector<pid_t> children;
  for (std::uint16_t rank = 0; rank < options.ranks; ++rank) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto rendezvous = make_tcp_rendezvous(store, rank == 0, std::chrono::seconds(20));
      if (rendezvous) {
        run_rank(options, rank, **rendezvous, body);
      } else {
        ADD_FAILURE() << rendezvous.error().message;
      }
      std::fflush(nullptr);
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    int status = 0;
    ASSERT_EQ(::waitpid(children[rank], &status, 0), children[rank]);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    EXPECT_TRUE(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        << "rank " << rank << " ended with status " << status;
  }
}

}  // namespace cais::runtime
