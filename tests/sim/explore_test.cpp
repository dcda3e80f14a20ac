// The model checker itself: it walks a small world to its end, the same way each time, and a bound
// holds it. That it finds what is wrong, tests/mutation shows.
#include "sim/check/explore.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace cais::sim {
namespace {

const SmallWorld& world(const std::string& name) {
  const auto& all = small_worlds();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const SmallWorld& w) { return w.name == name; });
  EXPECT_NE(found, all.end()) << name;
  return *found;
}

TEST(Explore, WalksASmallWorldToItsEnd) {
  const Exploration found = explore(world("all_reduce-2-w1"), 100'000, 1);
  EXPECT_EQ(found.failure, "");
  EXPECT_TRUE(found.complete);
  EXPECT_GT(found.states, 100u);
  EXPECT_GT(found.steps, found.states);
  EXPECT_EQ(found.states, explore(world("all_reduce-2-w1"), 100'000, 1).states);
}

TEST(Explore, StopsAtItsBound) {
  const Exploration found = explore(world("all_gather-3-w2"), 500, 8);
  EXPECT_EQ(found.failure, "");
  EXPECT_FALSE(found.complete);
  EXPECT_EQ(found.states, 500u);
}

/// Ranks that every op treats alike may change places: so there is less to walk.
TEST(Explore, AllRanksOfAnAllReduceAreAlike) {
  SmallWorld three = world("all_reduce-3-w1");
  const std::uint64_t alike = explore(three, 100'000, 64).states;
  three.ops.push_back({OpKind::scatter, 3});  // units belong to ranks: no two are alike
  EXPECT_GT(explore(three, 25'000, 64).states, 3 * alike);
}

TEST(Explore, EveryKindOfOpHasAWorld) {
  std::set<OpKind> kinds;
  for (const SmallWorld& each : small_worlds()) {
    for (const SmallOp& op : each.ops) kinds.insert(op.kind);
  }
  EXPECT_EQ(kinds.size(), 9u);
}

}  // namespace
}  // namespace cais::sim
