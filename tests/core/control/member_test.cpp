// P15: which orders a machine obeys.
#include "core/control/member.hpp"

#include <gtest/gtest.h>

namespace cais::control {
namespace {

using Deed = Response::Deed;
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

constexpr SessionId session{7};

Order order(Order::Kind kind, std::uint64_t lease, std::uint64_t number, std::uint16_t epoch) {
  Order what{};
  what.kind = kind;
  what.lease = Lease(lease);
  what.number = number;
  what.session = session;
  what.epoch = Epoch(epoch);
  what.to = node(SwitchNumber(3));
  return what;
}

TEST(SwitchMember, BeginsAnEpochOfASessionThatItHasNot) {
  SwitchMember member;
  const Response begun = member.take(order(Order::Kind::begin, 1, 1, 5));
  EXPECT_EQ(begun.deed, Deed::begin);
  ASSERT_TRUE(begun.answer);
  EXPECT_EQ(begun.answer->kind, Answer::Kind::begun);
  EXPECT_EQ(begun.answer->from, node(SwitchNumber(3)));
  ASSERT_NE(member.find(session), nullptr);
  EXPECT_EQ(member.find(session)->epoch(), Epoch(5));
  EXPECT_EQ(member.find(SessionId(8)), nullptr);
}

TEST(SwitchMember, HasNothingToFenceOfASessionThatItHasNot) {
  SwitchMember member;
  const Response fenced = member.take(order(Order::Kind::fence, 1, 1, 5));
  EXPECT_EQ(fenced.deed, Deed::nothing);
  EXPECT_EQ(fenced.answer->kind, Answer::Kind::fenced);
  EXPECT_EQ(member.find(session), nullptr);
}

/// A close that overtakes the order to begin: the session must stay closed (P20).
TEST(SwitchMember, DoesNotHearWhatALaterOrderHasOvertaken) {
  SwitchMember member;
  member.open(session, Epoch(1));
  EXPECT_EQ(member.take(order(Order::Kind::fence, 1, 1, 2)).deed, Deed::fence);
  EXPECT_EQ(member.take(order(Order::Kind::close, 1, 3, 2)).deed, Deed::close);
  EXPECT_EQ(member.find(session), nullptr);
  const Response late = member.take(order(Order::Kind::begin, 1, 2, 2));
  EXPECT_EQ(late.deed, Deed::nothing);
  EXPECT_FALSE(late.answer);
  EXPECT_FALSE(member.take(order(Order::Kind::close, 1, 3, 2)).answer);  // it came twice
  const Response again = member.take(order(Order::Kind::close, 1, 4, 2));
  EXPECT_EQ(again.deed, Deed::nothing);
  EXPECT_EQ(again.answer->kind, Answer::Kind::closed);
}

TEST(SwitchMember, ANewerControllerCountsItsOwnOrders) {
  SwitchMember member;
  member.open(session, Epoch(1));
  EXPECT_EQ(member.take(order(Order::Kind::fence, 1, 100, 2)).deed, Deed::fence);
  member.know(Lease(2));
  const Response stale = member.take(order(Order::Kind::begin, 1, 101, 2));
  EXPECT_EQ(stale.deed, Deed::nothing);
  EXPECT_EQ(stale.answer->kind, Answer::Kind::stale);
  EXPECT_EQ(stale.answer->lease, Lease(2));
  EXPECT_EQ(member.take(order(Order::Kind::fence, 2, 1, 3)).deed, Deed::fence);
  member.know(Lease(2));  // no news
  EXPECT_FALSE(member.take(order(Order::Kind::fence, 2, 1, 4)).answer);
}

TEST(RankMember, AnswersWithHowItStands) {
  RankMember member{Epoch(1)};
  EXPECT_EQ(member.take(order(Order::Kind::fence, 1, 1, 2)).deed, Deed::fence);
  const Response again = member.take(order(Order::Kind::fence, 1, 2, 2));
  EXPECT_EQ(again.deed, Deed::nothing);
  EXPECT_EQ(again.answer->kind, Answer::Kind::fenced);
  EXPECT_EQ(member.take(order(Order::Kind::begin, 1, 3, 2)).deed, Deed::begin);
  EXPECT_FALSE(member.take(order(Order::Kind::fence, 1, 1, 2)).answer);  // its own, late
  const Response other = member.take(order(Order::Kind::fence, 2, 1, 2));
  EXPECT_EQ(other.answer->kind, Answer::Kind::ahead);
  EXPECT_EQ(other.answer->epoch, Epoch(2));
  EXPECT_EQ(member.take(order(Order::Kind::fence, 1, 9, 9)).answer->kind, Answer::Kind::stale);
}

/// P19: once, and then it has nothing to fence any more.
TEST(RankMember, FailsOnce) {
  RankMember member{Epoch(1)};
  EXPECT_EQ(member.take(order(Order::Kind::fail, 1, 1, 2)).deed, Deed::fail);
  EXPECT_TRUE(member.over());
  const Response again = member.take(order(Order::Kind::fail, 1, 2, 2));
  EXPECT_EQ(again.deed, Deed::nothing);
  EXPECT_EQ(again.answer->kind, Answer::Kind::failed);
  EXPECT_FALSE(member.take(order(Order::Kind::fence, 1, 3, 3)).answer);
}

}  // namespace
}  // namespace cais::control
