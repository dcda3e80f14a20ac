// The model checker itself: it walks a small world to its end, the same way each time, and a bound
// holds it. That it finds what is wrong, tests/mutation shows.
#include "sim/check/explore.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sim/check/model.hpp"

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
  SmallWorld two = world("all_reduce-2-w1");
  two.ops = {{OpKind::all_reduce, 1}};
  const Exploration found = explore(two, 100'000, 1);
  EXPECT_EQ(found.failure, "");
  EXPECT_TRUE(found.complete);
  EXPECT_GT(found.states, 100u);
  EXPECT_GT(found.steps, found.states);
  EXPECT_EQ(found.states, explore(two, 100'000, 1).states);
}

TEST(Explore, StopsAtItsBound) {
  const Exploration found = explore(world("all_gather-3-w2"), 500, 8);
  EXPECT_EQ(found.failure, "");
  EXPECT_FALSE(found.complete);
  EXPECT_EQ(found.states, 500u);
}

/// The state in which `rank`, of two that have contributed, has asked first.
std::uint64_t asked_by(OpKind kind, std::uint32_t rank) {
  SmallWorld two = world("all_reduce-2-w1");
  two.ops = {{kind, 1}};
  Model model(two);
  State state = model.first();
  model.apply(state, Action{Action::Kind::timeout, rank});
  return model.fingerprint(state);
}

/// Ranks that every op treats alike may change places: so there is less to walk.
TEST(Explore, AllRanksOfAnAllReduceAreAlike) {
  EXPECT_EQ(asked_by(OpKind::all_reduce, 0), asked_by(OpKind::all_reduce, 1));
  EXPECT_NE(asked_by(OpKind::reduce, 0), asked_by(OpKind::reduce, 1));  // one is the root
}

/// In a tree those are alike that are below the same switch: here 0 and 1, and 2 and 3.
TEST(Explore, RanksBelowOneSwitchAreAlike) {
  Model model(world("tree-all_gather-4-w1"));
  const auto contributed_by = [&](std::uint32_t rank) {
    State state = model.first();
    model.apply(state, Action{Action::Kind::packet,
                              rank});  // the ranks' contributions are the first packets
    model.apply(state, Action{Action::Kind::timeout, rank});
    return model.fingerprint(state);
  };
  EXPECT_EQ(contributed_by(0), contributed_by(1));
  EXPECT_EQ(contributed_by(2), contributed_by(3));
  EXPECT_NE(contributed_by(0), contributed_by(2));
}

/// A change of the epoch, with every order and answer that may be lost, doubled or late.
TEST(Explore, WalksAWorldOfControllersToItsEnd) {
  const auto& all = control_worlds();
  const auto two = std::find_if(all.begin(), all.end(), [](const ControlWorld& each) {
    return each.name == "control-two-switches";
  });
  ASSERT_NE(two, all.end());
  const Exploration found = explore(*two, 100'000, 1);
  EXPECT_EQ(found.failure, "");
  EXPECT_TRUE(found.complete);
  EXPECT_GT(found.states, 1000u);
  EXPECT_EQ(found.timeouts, 1);
}

TEST(Explore, EveryWorldHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const NamedWorld& each : all_worlds()) names.insert(each.name);
  EXPECT_EQ(names.size(), small_worlds().size() + control_worlds().size());
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
