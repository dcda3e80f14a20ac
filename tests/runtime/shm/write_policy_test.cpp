// How a rank learns which way of writing is the better one, with times that the test makes up.
#include "runtime/shm/write_policy.hpp"

#include <gtest/gtest.h>

#include "runtime/shm/layout.hpp"

namespace cais::runtime::shm {
namespace {

using Way = WritePolicy::Way;

struct NsPerLine {
  std::int64_t through, past;
};
constexpr NsPerLine one_cache{7, 2};
constexpr NsPerLine two_caches{26, 2};
constexpr NsPerLine one_cache_cold_source{16, 8};
constexpr NsPerLine two_caches_cold_source{33, 8};

Duration time_of(Way way, std::size_t bytes, NsPerLine costs) {
  const std::int64_t ns = way == Way::through_cache ? costs.through : costs.past;
  return Duration(ns * static_cast<std::int64_t>(bytes / line_bytes));
}

/// Writes `count` times; how many of them went past the cache.
int write(WritePolicy& policy, std::size_t bytes, NsPerLine costs, int count) {
  int past = 0;
  for (int i = 0; i < count; ++i) {
    const Way way = policy.choose(bytes);
    past += way == Way::past_cache;
    policy.took(bytes, way, time_of(way, bytes, costs));
  }
  return past;
}

TEST(WritePolicy, StaysInOneCacheButForProbes) {
  WritePolicy policy;
  EXPECT_LE(write(policy, 64 * 1024, one_cache, 1000), 20);
  EXPECT_EQ(policy.better(), Way::through_cache);
  WritePolicy cold;
  EXPECT_LE(write(cold, 64 * 1024, one_cache_cold_source, 1000), 20);
}

TEST(WritePolicy, GoesPastTheCacheBetweenTwo) {
  WritePolicy policy;
  EXPECT_GE(write(policy, 64 * 1024, two_caches, 1000), 970);
  EXPECT_EQ(policy.better(), Way::past_cache);
  WritePolicy cold;
  EXPECT_GE(write(cold, 1 << 20, two_caches_cold_source, 1000), 970);
}

TEST(WritePolicy, FollowsAMoveOfTheCores) {
  WritePolicy policy;
  write(policy, 64 * 1024, one_cache, 1000);
  write(policy, 64 * 1024, two_caches, 10);  // it is seen in the first few writes
  EXPECT_EQ(policy.better(), Way::past_cache);
  write(policy, 64 * 1024, two_caches, 1000);
  write(policy, 64 * 1024, one_cache, 70);  // it takes a probe
  EXPECT_EQ(policy.better(), Way::through_cache);
}

TEST(WritePolicy, OnePreemptionChangesNothing) {
  WritePolicy policy;
  write(policy, 64 * 1024, one_cache, 100);
  const Way way = policy.choose(64 * 1024);
  policy.took(64 * 1024, way, std::chrono::milliseconds(4));
  EXPECT_EQ(policy.better(), Way::through_cache);
  write(policy, 64 * 1024, two_caches, 100);
  policy.took(64 * 1024, policy.choose(64 * 1024), std::chrono::milliseconds(4));
  EXPECT_EQ(policy.better(), Way::past_cache);
}

TEST(WritePolicy, SizesAreJudgedApart) {
  WritePolicy policy;
  write(policy, 4 * 1024, one_cache, 100);
  write(policy, 1 << 20, two_caches, 100);
  EXPECT_EQ(policy.choose(4 * 1024), Way::through_cache);
  EXPECT_EQ(policy.choose(1 << 20), Way::past_cache);
  EXPECT_GE(write(policy, std::size_t{1} << 32, two_caches, 100), 90);
}

}  // namespace
}  // namespace cais::runtime::shm
