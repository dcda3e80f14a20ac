// How a group over UDP ends when something is wrong: the same error at all ranks, within a second.
#include "tests/runtime/udp/checks.hpp"
#include "tests/runtime/udp/processes.hpp"

namespace cais::runtime {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(UdpFailures, MismatchIsExplainedToAll) {
  with_ranks({.ranks = 3}, [](TestRank& member) {
    check_all_reduce(member, 10);
    expect_mismatch(member);
    // And it stays so.
    std::vector<float> data(1);
    EXPECT_EQ(member.run(collective(OpKind::all_reduce, 1, data.data(), data.data())).error().code,
              ErrorCode::mismatch);
  });
}

TEST(UdpFailures, LateRankIsNamed) {
  with_ranks({.ranks = 3}, [](TestRank& member) {
    check_all_reduce(member, 10);
    expect_late_rank(member);
  });
}

TEST(UdpFailures, KilledRankIsNamed) {
  with_processes({.ranks = 3}, [](TestRank& member) {
    check_all_reduce(member, 100'000);
    expect_lost_rank(member);
  });
}

TEST(UdpFailures, AbortIsHeardByAll) {
  with_ranks({.ranks = 3}, [](TestRank& member) {
    std::vector<float> data(100);
    if (member.rank() == 0) {
      member.transport().abort(Error{ErrorCode::aborted, "the test wants it"});
    }
    const Result<void> outcome =
        member.run(collective(OpKind::all_reduce, 100, data.data(), data.data()));
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::aborted);
    EXPECT_THAT(outcome.error().message, HasSubstr("the test wants it"));
  });
}

TEST(UdpFailures, AbortWakesWhoeverWaits) {
  with_ranks({.ranks = 2}, [](TestRank& member) {
    if (member.rank() == 1) return std::this_thread::sleep_for(milliseconds(300));
    std::thread aborter([&] {
      std::this_thread::sleep_for(milliseconds(50));
      member.transport().abort(Error{ErrorCode::aborted, "enough"});
    });
    std::vector<float> data(100);
    const Instant begin = io::now();
    EXPECT_FALSE(member.run(collective(OpKind::all_reduce, 100, data.data(), data.data())).ok());
    EXPECT_LT(io::now() - begin, milliseconds(250));
    aborter.join();
  });
}

TEST(UdpFailures, LeavingTooEarlyIsAnErrorForTheOthers) {
  with_ranks({.ranks = 3}, [](TestRank& member) {
    check_all_reduce(member, 10);
    if (member.rank() == 2) return;
    std::vector<float> data(10);
    const Result<void> outcome =
        member.run(collective(OpKind::all_reduce, 10, data.data(), data.data()));
    ASSERT_FALSE(outcome.ok());
    EXPECT_THAT(outcome.error().message, HasSubstr("rank 2 (host"));
  });
}

TEST(UdpFailures, LeavingWaitsForWhoeverNeedsRepeats) {
  // Half of all packets are lost: whoever is done first must still answer the others.
  const Faults faults{.loss = 0.5};
  for (const std::uint64_t seed : {31, 32, 33}) {
    with_ranks({.ranks = 3, .faults = faults, .seed = seed},
               [](TestRank& member) { check_all_reduce(member, 2000); });
  }
}

TEST(UdpFailures, MissingRankIsNamedInTime) {
  MemoryRendezvous rendezvous;
  Settings settings;
  settings.socket_ifname = "lo";
  GroupConfig group;
  group.name = "lonely";
  group.ranks = 2;
  group.timeout = milliseconds(100);
  Result<std::unique_ptr<Transport>> transport = make_udp_transport(settings, group, rendezvous);
  ASSERT_FALSE(transport.ok());
  EXPECT_EQ(transport.error().code, ErrorCode::timed_out);
  EXPECT_THAT(transport.error().message, HasSubstr("rank 1"));
}

}  // namespace
}  // namespace cais::runtime
