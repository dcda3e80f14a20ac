// What goes wrong between ranks of one machine ends at every rank, soon, with an error that says
// what it was; nothing hangs and nothing is left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/runtime/processes.hpp"
#include "tests/runtime/ranks.hpp"

namespace cais::runtime {
namespace {

using testing::all_reduce_of;
using ::testing::HasSubstr;
using testing::RankProcesses;
using testing::RanksConfig;
using testing::run_ranks;
using Clock = std::chrono::steady_clock;

constexpr int success = 0;
constexpr int as_expected = 7;
constexpr int unexpected = 8;

/// Calls all-reduces until one fails; whether that is for the loss of `lost`, which the error
/// names.
int reduce_until_lost(Communicator& communicator, std::size_t count, std::size_t lost) {
  std::vector<float> tensor(count);
  while (true) {
    const auto outcome = communicator.run(all_reduce_of(tensor));
    if (outcome.ok()) continue;
    const std::string rank = "rank " + std::to_string(lost) + " (pid ";
    const bool named = outcome.error().message.find(rank) != std::string::npos;
    return outcome.error().code == ErrorCode::rank_lost && named ? as_expected : unexpected;
  }
}

/// Kills rank `lost` of 4 in the middle of all-reduces of `count` elements.
void kill_one(std::size_t lost, std::size_t count) {
  RankProcesses ranks(4, std::chrono::seconds(30), [&](Communicator& communicator) {
    return reduce_until_lost(communicator, count, lost);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ::kill(ranks.pid(lost), SIGKILL);
  const auto killed = Clock::now();
  for (std::size_t rank = 0; rank < 4; ++rank) {
    if (rank == lost) continue;
    EXPECT_EQ(ranks.wait(rank), as_expected) << "rank " << rank;
  }
  EXPECT_LT(Clock::now() - killed, std::chrono::seconds(1));
}

bool dev_shm_is_clean() {
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    if (entry.path().filename().string().find("cais") != std::string::npos) return false;
  }
  return true;
}

TEST(ShmFaults, KilledRankIsNamedByAllOthers) {
  kill_one(2, 16);
  kill_one(3, 4000);
  kill_one(1, 1'000'000);
  EXPECT_TRUE(dev_shm_is_clean());
}

TEST(ShmFaults, KilledLeaderIsNamedByAllOthers) {
  kill_one(0, 16);
  kill_one(0, 1'000'000);
}

TEST(ShmFaults, KilledRankIsSeenThoughItsForkedChildLives) {
  RankProcesses ranks(2, std::chrono::seconds(30), [](Communicator& communicator) {
    if (communicator.rank() == 1 && ::fork() == 0) {  // as a DataLoader worker
      std::this_thread::sleep_for(std::chrono::seconds(3));
      ::_exit(success);
    }
    return reduce_until_lost(communicator, 16, 1);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ::kill(ranks.pid(1), SIGKILL);
  EXPECT_EQ(ranks.wait(0, std::chrono::seconds(2)), as_expected);
}

TEST(ShmFaults, RankThatLeavesInOrderIsNamedByWhoStillWantsIt) {
  run_ranks(3, {}, [](Communicator& communicator) {
    std::vector<float> tensor(10);
    ASSERT_TRUE(communicator.run(all_reduce_of(tensor)).ok());
    if (communicator.rank() == 1) return communicator.shutdown();
    const auto outcome = communicator.run(all_reduce_of(tensor));
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::rank_lost);
    EXPECT_THAT(outcome.error().message, HasSubstr("rank 1 (pid "));
    EXPECT_THAT(outcome.error().message, HasSubstr("left the group"));
  });
}

TEST(ShmFaults, MismatchIsExplainedAtEveryRank) {
  run_ranks(3, {}, [](Communicator& communicator) {
    std::vector<float> tensor(communicator.rank() == 2 ? 11 : 10);
    const auto begun = Clock::now();
    const auto outcome = communicator.run(all_reduce_of(tensor));
    EXPECT_LT(Clock::now() - begun, std::chrono::seconds(1));
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::mismatch);
    EXPECT_THAT(outcome.error().message, HasSubstr("[10]"));
    EXPECT_THAT(outcome.error().message, HasSubstr("[11]"));
    EXPECT_THAT(outcome.error().message, HasSubstr("rank 2"));
    EXPECT_FALSE(communicator.run(all_reduce_of(tensor)).ok()) << "the group has ended";
  });
}

TEST(ShmFaults, MismatchOfLargeOpsTouchesNoTensor) {
  run_ranks(2, {}, [](Communicator& communicator) {
    std::vector<float> tensor(500'000, 3.0f);
    Collective collective = all_reduce_of(tensor);
    if (communicator.rank() == 1) collective.reduce_op = ReduceOp::max;
    const auto outcome = communicator.run(collective);
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::mismatch);
    EXPECT_EQ(tensor, std::vector<float>(500'000, 3.0f));
  });
}

TEST(ShmFaults, TimeoutNamesWhoIsMissing) {
  RanksConfig config;
  config.timeout = std::chrono::milliseconds(300);
  std::atomic<int> ended{0};
  run_ranks(4, config, [&](Communicator& communicator) {
    std::vector<float> tensor(10);
    if (communicator.rank() >= 2) {  // stay in the group, and do not come
      while (ended < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    const auto outcome = communicator.run(all_reduce_of(tensor));
    ++ended;
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::timed_out);
    EXPECT_THAT(outcome.error().message, HasSubstr("2 (pid "));
    EXPECT_THAT(outcome.error().message, HasSubstr("3 (pid "));
    EXPECT_THAT(outcome.error().message, HasSubstr("have not arrived"));
  });
}

TEST(ShmFaults, MissingRankIsNamedWhenTheGroupComesTogether) {
  testing::MapRendezvous rendezvous;
  std::vector<std::thread> threads;
  for (std::uint16_t rank = 0; rank < 3; ++rank) {
    if (rank == 1) continue;
    threads.emplace_back([&rendezvous, rank] {
      const GroupConfig config{"late", rank, 3, std::chrono::milliseconds(200)};
      const auto made = Communicator::create(Settings(), config, rendezvous);
      ASSERT_FALSE(made.ok());
      EXPECT_EQ(made.error().code, ErrorCode::timed_out);
      EXPECT_THAT(made.error().message, HasSubstr("rank(s) 1 of 3"));
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(ShmFaults, LateRankIsWaitedFor) {
  run_ranks(3, {}, [](Communicator& communicator) {
    std::vector<float> tensor(100'000, 1.0f);
    if (communicator.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ASSERT_TRUE(communicator.run(all_reduce_of(tensor)).ok());
    EXPECT_EQ(tensor[99'999], 3.0f);
  });
}

TEST(ShmFaults, AbortEndsAWaitAtEveryRank) {
  run_ranks(3, {}, [](Communicator& communicator) {
    std::vector<float> tensor(10);
    if (communicator.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return communicator.abort("the user had enough");
    }
    const auto outcome = communicator.run(all_reduce_of(tensor));
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::aborted);
    EXPECT_THAT(outcome.error().message, HasSubstr("the user had enough"));
  });
}

/// Who is done may go while others still finish: their last collective must not fail for that.
TEST(ShmFaults, RankThatIsDoneDisturbsNobody) {
  for (int round = 0; round < 20; ++round) {
    RankProcesses ranks(4, std::chrono::seconds(30), [](Communicator& communicator) {
      std::vector<float> tensor(100'000);
      return communicator.run(all_reduce_of(tensor)).ok() ? as_expected : unexpected;
    });
    for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(ranks.wait(rank), as_expected);
  }
}

TEST(ShmFaults, DestroyedCommunicatorEndsWhatIsUnderWay) {
  std::atomic<int> called_back{0};
  run_ranks(2, {}, [&](Communicator& communicator) {
    if (communicator.rank() == 1) return;
    auto tensor = std::make_shared<std::vector<float>>(10);
    auto operation = communicator.start(all_reduce_of(*tensor), Start::background, tensor,
                                        [&](const Operation& ended) {
                                          EXPECT_FALSE(ended.outcome().ok());
                                          ++called_back;
                                        });
    ASSERT_TRUE(operation.ok());
  });
  EXPECT_EQ(called_back, 1);
}

TEST(ShmFaults, BadArgumentsAreNamed) {
  run_ranks(1, {}, [](Communicator& communicator) {
    std::vector<float> tensor(10);
    Collective collective = all_reduce_of(tensor);
    collective.recv = nullptr;
    auto outcome = communicator.run(collective);
    ASSERT_FALSE(outcome.ok());
    EXPECT_THAT(outcome.error().message, HasSubstr("recv"));
    collective = all_reduce_of(tensor);
    collective.kind = OpKind::broadcast;
    collective.reduce_op = ReduceOp::none;
    collective.root = Rank(5);
    EXPECT_FALSE(communicator.run(collective).ok());
    collective = all_reduce_of(tensor);
    collective.dtype = DType::bytes4;
    EXPECT_FALSE(communicator.run(collective).ok());
    EXPECT_TRUE(communicator.run(all_reduce_of(tensor)).ok()) << "the group lives on";
  });
}

}  // namespace
}  // namespace cais::runtime
