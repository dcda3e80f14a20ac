// Who drives a communicator: blocking calls, operations in the background, callbacks, and threads
// that share one.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/runtime/ranks.hpp"

namespace cais::runtime {
namespace {

using testing::all_reduce_of;
using testing::run_ranks;

TEST(Communicator, BackgroundOperationEndsThoughNobodyWaits) {
  run_ranks(3, {}, [](Communicator& communicator) {
    std::vector<float> tensor(50'000, 2.0f);
    std::atomic<bool> called{false};
    auto operation = communicator.start(all_reduce_of(tensor), Start::background, nullptr,
                                        [&](const Operation& ended) {
                                          EXPECT_TRUE(ended.done());
                                          EXPECT_TRUE(ended.outcome().ok());
                                          called = true;
                                        });
    ASSERT_TRUE(operation.ok());
    while (!called) std::this_thread::yield();
    EXPECT_EQ(tensor[49'999], 6.0f);
  });
}

TEST(Communicator, ManyInFlightEndInOrder) {
  run_ranks(3, {}, [](Communicator& communicator) {
    std::vector<std::vector<float>> tensors(100);
    std::vector<std::shared_ptr<Operation>> operations;
    std::atomic<int> ended{0};
    for (int i = 0; i < 100; ++i) {
      tensors[i].assign(1 + 500 * (i % 7), static_cast<float>(i));
      const std::shared_ptr<Operation> before = i == 0 ? nullptr : operations.back();
      auto operation = communicator.start(all_reduce_of(tensors[i]), Start::background, nullptr,
                                          [&, before](const Operation&) {
                                            EXPECT_TRUE(before == nullptr || before->done());
                                            ++ended;
                                          });
      ASSERT_TRUE(operation.ok());
      operations.push_back(*operation);
    }
    ASSERT_TRUE(communicator.wait(*operations[60]).ok());
    ASSERT_TRUE(communicator.wait(*operations[99]).ok());
    communicator.shutdown();
    for (int i = 0; i < 100; ++i) EXPECT_EQ(tensors[i].back(), 3.0f * static_cast<float>(i));
    // Another thread may still be in the callbacks that it took.
    while (ended < 100) std::this_thread::yield();
  });
}

/// A callback may start the next collective, as a hook of autograd does.
TEST(Communicator, CallbackMayStartTheNext) {
  run_ranks(2, {}, [](Communicator& communicator) {
    std::vector<float> first(10, 1.0f);
    std::vector<float> second(10, 1.0f);
    std::atomic<bool> done{false};
    auto operation =
        communicator.start(all_reduce_of(first), Start::background, nullptr, [&](const Operation&) {
          auto next = communicator.start(all_reduce_of(second), Start::background, nullptr,
                                         [&](const Operation&) { done = true; });
          ASSERT_TRUE(next.ok());
        });
    ASSERT_TRUE(operation.ok());
    while (!done) std::this_thread::yield();
    EXPECT_EQ(second[9], 2.0f);
  });
}

/// Blocking calls come between background operations, in the same order at all ranks.
TEST(Communicator, BlockingCallsFindTheirPlaceAmongBackgroundOnes) {
  run_ranks(4, {}, [](Communicator& communicator) {
    std::vector<float> background(3000, 1.0f);
    std::vector<float> blocking(10, 1.0f);
    for (int i = 0; i < 50; ++i) {
      std::fill(background.begin(), background.end(), 1.0f);
      auto operation = communicator.start(all_reduce_of(background), Start::background);
      ASSERT_TRUE(operation.ok());
      std::fill(blocking.begin(), blocking.end(), 1.0f);
      ASSERT_TRUE(communicator.run(all_reduce_of(blocking)).ok());
      EXPECT_EQ(blocking[9], 4.0f);
      ASSERT_TRUE(communicator.wait(**operation).ok());
      EXPECT_EQ(background[2999], 4.0f);
    }
  });
}

TEST(Communicator, RefusesWorkAfterShutdown) {
  run_ranks(2, {}, [](Communicator& communicator) {
    std::vector<float> tensor(10);
    ASSERT_TRUE(communicator.run(all_reduce_of(tensor)).ok());
    communicator.shutdown();
    const auto outcome = communicator.run(all_reduce_of(tensor));
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::aborted);
  });
}

}  // namespace
}  // namespace cais::runtime
