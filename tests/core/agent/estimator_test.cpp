#include "core/agent/estimator.hpp"

#include <gtest/gtest.h>

namespace cais::agent {
namespace {

using std::chrono::milliseconds;

RttEstimator estimator() {
  return RttEstimator(milliseconds(20), milliseconds(2), milliseconds(500));
}

TEST(RttEstimator, TimesOutAfterOneAndAHalfRoundTrips) {
  RttEstimator rtt = estimator();
  EXPECT_EQ(rtt.rto(0), milliseconds(20));
  rtt.sample(Instant(milliseconds(10)), milliseconds(10));
  EXPECT_EQ(rtt.smoothed(), milliseconds(10));
  EXPECT_EQ(rtt.rto(0), milliseconds(15));
  rtt.sample(Instant(milliseconds(20)), milliseconds(18));
  EXPECT_EQ(rtt.smoothed(), milliseconds(11));
}

TEST(RttEstimator, BacksOffWithinItsBounds) {
  RttEstimator rtt = estimator();
  rtt.sample(Instant(milliseconds(1)), std::chrono::microseconds(100));
  EXPECT_EQ(rtt.rto(0), milliseconds(2));
  EXPECT_EQ(rtt.rto(3), milliseconds(16));
  EXPECT_EQ(rtt.rto(200), milliseconds(500));
}

TEST(RttEstimator, ABurstThatComesLateCountsOnce) {
  RttEstimator rtt = estimator();
  rtt.sample(Instant(milliseconds(10)), milliseconds(8));
  for (int i = 0; i < 100; ++i) rtt.sample(Instant(milliseconds(400)), milliseconds(88));
  EXPECT_EQ(rtt.smoothed(), milliseconds(18));
}

void settle_round(CongestionWindow& window, std::uint32_t lost_percent) {
  const std::uint32_t fragments = window.fragments();
  for (std::uint32_t i = 0; i < fragments * lost_percent / 100; ++i) window.lost();
  for (std::uint32_t i = 0; i < fragments; ++i) window.settled();
}

TEST(CongestionWindow, GrowsToItsBoundWhileNothingIsLost) {
  CongestionWindow window(512);
  EXPECT_EQ(window.fragments(), 64u);
  settle_round(window, 0);
  EXPECT_EQ(window.fragments(), 128u);
  for (int i = 0; i < 5; ++i) settle_round(window, 0);
  EXPECT_EQ(window.fragments(), 512u);
}

TEST(CongestionWindow, ToleratesWhatALinkLosesByChance) {
  CongestionWindow window(512);
  for (int i = 0; i < 50; ++i) settle_round(window, 2);
  EXPECT_EQ(window.fragments(), 512u);
}

TEST(CongestionWindow, ShrinksWhenAQueueOverflowsAndGrowsSlowlyAfterwards) {
  CongestionWindow window(512);
  for (int i = 0; i < 5; ++i) settle_round(window, 0);
  settle_round(window, 40);
  const std::uint32_t cut = window.fragments();
  EXPECT_LT(cut, 400u);
  settle_round(window, 0);
  EXPECT_EQ(window.fragments(), cut + cut / 16);
  for (int i = 0; i < 50; ++i) settle_round(window, 60);
  EXPECT_GE(window.fragments(), 1u);
  EXPECT_LE(window.fragments(), 8u);
}

TEST(CongestionWindow, IsNeverLargerThanP1Allows) {
  CongestionWindow window(4);
  for (int i = 0; i < 5; ++i) settle_round(window, 0);
  EXPECT_EQ(window.fragments(), 4u);
}

}  // namespace
}  // namespace cais::agent
