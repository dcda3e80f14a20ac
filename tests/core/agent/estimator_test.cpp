#include "core/agent/estimator.hpp"

#include <gtest/gtest.h>

namespace cais::agent {
namespace {

using std::chrono::milliseconds;

RttEstimator estimator() {
  return RttEstimator(milliseconds(20), milliseconds(2), milliseconds(500));
}

TEST(RttEstimator, TimesOutAfterTwoRoundTrips) {
  RttEstimator rtt = estimator();
  EXPECT_EQ(rtt.rto(0), milliseconds(20));
  rtt.sample(Instant(milliseconds(10)), milliseconds(10), true);
  EXPECT_EQ(rtt.smoothed(), milliseconds(10));
  EXPECT_EQ(rtt.rto(0), milliseconds(20));
  rtt.sample(Instant(milliseconds(20)), milliseconds(18), true);
  EXPECT_EQ(rtt.smoothed(), milliseconds(11));
  EXPECT_EQ(rtt.rto(0), milliseconds(22));
}

TEST(RttEstimator, BacksOffWithinItsBounds) {
  RttEstimator rtt = estimator();
  rtt.sample(Instant(milliseconds(1)), std::chrono::microseconds(100), true);
  EXPECT_EQ(rtt.rto(0), milliseconds(2));
  EXPECT_EQ(rtt.rto(3), milliseconds(16));
  EXPECT_EQ(rtt.rto(4), milliseconds(32));
  EXPECT_EQ(rtt.rto(200), milliseconds(32));
  rtt.sample(Instant(milliseconds(500)), milliseconds(500), true);
  EXPECT_EQ(rtt.rto(200), milliseconds(500));
}

TEST(RttEstimator, AQuestionTellsHowLongTheWayIs) {
  RttEstimator rtt = estimator();
  rtt.sample(Instant(milliseconds(4)), milliseconds(4), true);
  rtt.question_answered(Instant(milliseconds(40)), milliseconds(30));
  EXPECT_EQ(rtt.smoothed(), milliseconds(30));
  EXPECT_EQ(rtt.rto(0), milliseconds(60));
  // Later answers waited for ranks: the timeout takes no more than as long again from them.
  for (int i = 1; i < 100; ++i) rtt.sample(Instant(milliseconds(400 * i)), milliseconds(400), true);
  EXPECT_EQ(rtt.rto(0), milliseconds(120));
  rtt.question_answered(Instant(milliseconds(40'000)), milliseconds(10));
  EXPECT_EQ(rtt.smoothed(), milliseconds(20));
}

TEST(RttEstimator, TheQuickestAnswerOfARoundTripCounts) {
  RttEstimator rtt = estimator();
  rtt.sample(Instant(milliseconds(10)), milliseconds(8), true);
  rtt.sample(Instant(milliseconds(12)), milliseconds(80), true);
  rtt.sample(Instant(milliseconds(14)), milliseconds(16), true);
  EXPECT_EQ(rtt.smoothed(), milliseconds(8));
  rtt.sample(Instant(milliseconds(18)), milliseconds(90), true);
  EXPECT_EQ(rtt.smoothed(), milliseconds(9));
  EXPECT_EQ(rtt.least(), milliseconds(8));
  EXPECT_EQ(rtt.take_quickest(), milliseconds(16));
  EXPECT_EQ(rtt.take_quickest(), milliseconds(0));
}

TEST(RttEstimator, ALateRankIsNotTheNetwork) {
  RttEstimator rtt = estimator();
  rtt.sample(Instant(milliseconds(1000)), milliseconds(900), false);
  rtt.sample(Instant(milliseconds(3000)), milliseconds(100), false);
  EXPECT_EQ(rtt.smoothed(), milliseconds(800));  // quicker: believed
  rtt.sample(Instant(milliseconds(5000)), milliseconds(2000), false);
  EXPECT_EQ(rtt.smoothed(), milliseconds(800));
  rtt.sample(Instant(milliseconds(7000)), milliseconds(2000), true);
  EXPECT_EQ(rtt.smoothed(), milliseconds(950));
}

/// A round whose quickest answer took `rtt`, of which `queued` in queues.
void round(CongestionWindow& window, Duration rtt, Duration queued,
           std::uint32_t lost_percent = 0) {
  const std::uint32_t packets = window.packets();
  for (std::uint32_t i = 0; i < packets * lost_percent / 100; ++i) window.lost();
  for (std::uint32_t i = 0; i < packets; ++i) window.settled();
  window.held_back();
  window.end_round(rtt, queued);
}

/// At its bound: half of W, so that a lost fragment is repaired before P1 stops the lane.
CongestionWindow grown(std::uint32_t fragments_max) {
  CongestionWindow window(fragments_max, 32);
  for (int i = 0; i < 10; ++i) round(window, milliseconds(1), milliseconds(0));
  return window;
}

TEST(CongestionWindow, DoublesToItsBoundWhileAnswersDoNotQueue) {
  CongestionWindow window(512, 32);
  EXPECT_EQ(window.packets(), 32u);
  round(window, milliseconds(1), milliseconds(0));
  EXPECT_EQ(window.packets(), 64u);
  for (int i = 0; i < 5; ++i) round(window, milliseconds(1), milliseconds(0));
  EXPECT_EQ(window.packets(), 256u);
}

TEST(CongestionWindow, DoesNotGrowByWhatWasNotTried) {
  CongestionWindow window(512, 32);
  for (int i = 0; i < 10; ++i) {
    window.settled();
    window.end_round(milliseconds(1), milliseconds(0));
  }
  EXPECT_EQ(window.packets(), 32u);
}

TEST(CongestionWindow, ALateRoundDoesNotMoveItFar) {
  CongestionWindow window = grown(512);
  round(window, milliseconds(900), milliseconds(899));
  EXPECT_EQ(window.packets(), 224u);
}

TEST(CongestionWindow, SettlesWhereAnswersQueueForAShortTime) {
  CongestionWindow window = grown(512);
  // A link on which each fragment takes 100 us, behind a way of 1 ms.
  for (int i = 0; i < 50; ++i) {
    const Duration queued = window.packets() * std::chrono::microseconds(100);
    round(window, milliseconds(1) + queued, queued);
  }
  EXPECT_NEAR(window.packets(), 60u, 6);
}

TEST(CongestionWindow, ToleratesWhatALinkLosesByChance) {
  CongestionWindow window = grown(512);
  for (int i = 0; i < 50; ++i) round(window, milliseconds(1), milliseconds(0), 5);
  EXPECT_EQ(window.packets(), 256u);
}

TEST(CongestionWindow, ShrinksWhenAQueueOverflows) {
  CongestionWindow window = grown(512);
  round(window, milliseconds(1), milliseconds(0), 40);
  EXPECT_LT(window.packets(), 200u);
  for (int i = 0; i < 50; ++i) round(window, milliseconds(1), milliseconds(0), 60);
  EXPECT_EQ(window.packets(), 4u);
}

TEST(CongestionWindow, IsNeverLargerThanP1Allows) {
  CongestionWindow window(4, 32);
  for (int i = 0; i < 5; ++i) round(window, milliseconds(1), milliseconds(0));
  EXPECT_EQ(window.packets(), 4u);
}

}  // namespace
}  // namespace cais::agent
