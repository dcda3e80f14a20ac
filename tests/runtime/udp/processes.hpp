// Ranks as processes, for tests in which one of them is killed.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <vector>

#include "runtime/tcp_rendezvous.hpp"
#include "tests/runtime/udp/group.hpp"

namespace cais::runtime {

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
