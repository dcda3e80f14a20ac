// P15: which orders a machine obeys.
#include "core/control/member.hpp"

#include <gtest/gtest.h>

namespace cais::control {
namespace {

using Verdict = Member::Verdict;

TEST(Member, BeginsWhatItWasFencedFor) {
  Member member{Epoch(1)};
  EXPECT_EQ(member.begin(Lease(1), Epoch(2)), Verdict::unfenced);
  EXPECT_EQ(member.fence(Lease(1), Epoch(2)), Verdict::obey);
  EXPECT_TRUE(member.fenced());
  EXPECT_EQ(member.fence(Lease(1), Epoch(2)), Verdict::again);
  EXPECT_EQ(member.begin(Lease(1), Epoch(2)), Verdict::obey);
  EXPECT_FALSE(member.fenced());
  EXPECT_EQ(member.begin(Lease(1), Epoch(2)), Verdict::again);
  EXPECT_EQ(member.epoch(), Epoch(2));
}

TEST(Member, NeverGoesBack) {
  Member member{Epoch(3)};
  EXPECT_EQ(member.fence(Lease(1), Epoch(2)), Verdict::ahead);
  EXPECT_EQ(member.fence(Lease(1), Epoch(3)), Verdict::ahead);
  EXPECT_EQ(member.begin(Lease(1), Epoch(2)), Verdict::ahead);
  EXPECT_EQ(member.epoch(), Epoch(3));
}

/// An order that comes twice, the second time after all is done, is no news of another controller.
TEST(Member, WhatItsOwnControllerHasOvertakenIsLate) {
  Member member{Epoch(1)};
  member.fence(Lease(1), Epoch(2));
  member.begin(Lease(1), Epoch(2));
  EXPECT_EQ(member.fence(Lease(1), Epoch(2)), Verdict::late);
  member.fence(Lease(1), Epoch(3));
  EXPECT_EQ(member.fence(Lease(1), Epoch(2)), Verdict::late);
  EXPECT_EQ(member.begin(Lease(1), Epoch(2)), Verdict::late);
  EXPECT_TRUE(member.fenced());
}

TEST(Member, AfterANewerLeaseAnOlderOneIsStale) {
  Member member{Epoch(1)};
  EXPECT_EQ(member.fence(Lease(1), Epoch(2)), Verdict::obey);
  EXPECT_EQ(member.fence(Lease(2), Epoch(2)), Verdict::again);
  EXPECT_EQ(member.begin(Lease(1), Epoch(2)), Verdict::stale);
  EXPECT_EQ(member.fence(Lease(1), Epoch(9)), Verdict::stale);
  EXPECT_EQ(member.end(Lease(1)), Verdict::stale);
  EXPECT_EQ(member.newest(), Lease(2));
  EXPECT_EQ(member.begin(Lease(2), Epoch(2)), Verdict::obey);
}

/// Two controllers count to the same epoch and mean different seqs: the second must count on.
TEST(Member, AnEpochIsBegunByOneControllerOnly) {
  Member member{Epoch(1)};
  EXPECT_EQ(member.fence(Lease(1), Epoch(2)), Verdict::obey);
  EXPECT_EQ(member.begin(Lease(1), Epoch(2)), Verdict::obey);
  EXPECT_EQ(member.fence(Lease(2), Epoch(2)), Verdict::ahead);
  EXPECT_EQ(member.begin(Lease(2), Epoch(2)), Verdict::ahead);
  EXPECT_EQ(member.fence(Lease(2), Epoch(3)), Verdict::obey);
}

TEST(Member, RemembersLeasesOfEarlierSessions) {
  Member member(Epoch(1), Lease(5));
  EXPECT_EQ(member.fence(Lease(4), Epoch(2)), Verdict::stale);
}

/// A close that overtakes the order to begin: the session must stay closed (P20).
TEST(Hearing, WhatALaterOrderHasOvertakenIsNotHeard) {
  using enum Hearing::Verdict;
  Hearing hearing;
  EXPECT_EQ(hearing.take(Lease(1), 1), hear);
  EXPECT_EQ(hearing.take(Lease(1), 3), hear);
  EXPECT_EQ(hearing.take(Lease(1), 2), overtaken);
  EXPECT_EQ(hearing.take(Lease(1), 3), overtaken);  // it came twice
  EXPECT_EQ(hearing.take(Lease(1), 4), hear);
}

TEST(Hearing, ANewerControllerCountsItsOwnOrders) {
  using enum Hearing::Verdict;
  Hearing hearing;
  EXPECT_EQ(hearing.take(Lease(1), 100), hear);
  hearing.know(Lease(2));
  EXPECT_EQ(hearing.newest(), Lease(2));
  EXPECT_EQ(hearing.take(Lease(1), 101), stale);
  EXPECT_EQ(hearing.take(Lease(2), 1), hear);
  hearing.know(Lease(2));  // no news
  EXPECT_EQ(hearing.take(Lease(2), 1), overtaken);
  EXPECT_EQ(hearing.take(Lease(3), 1), hear);
  EXPECT_EQ(hearing.newest(), Lease(3));
}

}  // namespace
}  // namespace cais::control
