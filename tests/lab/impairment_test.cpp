#include "tests/lab/impairment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

namespace cais::lab {
namespace {

using Bytes = std::array<std::byte, 18>;

/// An Ethernet frame that carries a number.
Bytes frame(std::uint32_t number, bool ipv4 = true) {
  Bytes bytes{};
  bytes[12] = std::byte{0x08};
  bytes[13] = ipv4 ? std::byte{0x00} : std::byte{0x06};
  for (std::size_t i = 0; i < 4; ++i) bytes[14 + i] = std::byte(number >> (8 * i));
  return bytes;
}

std::uint32_t number(Impairment::Frame bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value |= std::to_integer<std::uint32_t>(bytes[14 + i]) << (8 * i);
  return value;
}

struct Link {
  explicit Link(const Rates& rates, std::uint64_t seed = 7)
      : impairment(rates, seed, [this](Impairment::Frame bytes) { out.push_back(number(bytes)); }) {
  }

  void send(std::uint32_t count, bool ipv4 = true) {
    for (std::uint32_t i = 0; i < count; ++i) impairment.admit(now, frame(i, ipv4));
  }
  void wait_out() { impairment.release(now + Impairment::hold_max); }

  Instant now{};
  std::vector<std::uint32_t> out;
  Impairment impairment;
};

TEST(Impairment, GoodLinkChangesNothing) {
  Link link({});
  link.send(100);
  ASSERT_EQ(link.out.size(), 100u);
  EXPECT_TRUE(std::ranges::is_sorted(link.out));
  EXPECT_EQ(link.impairment.deadline(), never);
}

TEST(Impairment, HitsTheShareThatWasAskedFor) {
  Link link({.loss = 0.02, .duplicate = 0.02, .reorder = 0.02});
  link.send(100'000);
  link.wait_out();
  const Counters& counters = link.impairment.counters();
  EXPECT_NEAR(static_cast<double>(counters.lost), 2000, 200);
  EXPECT_NEAR(static_cast<double>(counters.duplicated), 1960, 200);
  EXPECT_NEAR(static_cast<double>(counters.reordered), 1960, 200);
  EXPECT_EQ(counters.received, 100'000u);
  EXPECT_EQ(counters.sent, counters.received - counters.lost + counters.duplicated);
  EXPECT_EQ(link.out.size(), counters.sent);
}

TEST(Impairment, LosesForGoodAndInventsNothing) {
  Link link({.loss = 0.1, .duplicate = 0.1, .reorder = 0.1});
  link.send(10'000);
  link.wait_out();
  const std::set<std::uint32_t> distinct(link.out.begin(), link.out.end());
  EXPECT_EQ(distinct.size(), 10'000 - link.impairment.counters().lost);
  EXPECT_LT(*distinct.rbegin(), 10'000u);
}

TEST(Impairment, HeldFrameIsOvertakenByAFewOnly) {
  Link link({.reorder = 0.05});
  link.send(10'000);
  link.wait_out();
  std::uint32_t most = 0, highest = 0;
  for (std::uint32_t each : link.out) {
    if (each < highest) most = std::max(most, highest - each);
    highest = std::max(highest, each);
  }
  EXPECT_GT(most, 0u);
  // Frames that are held themselves do not count as passed: a little more than overtakers_max.
  EXPECT_LE(most, 2 * Impairment::overtakers_max);
}

TEST(Impairment, LastFrameLeavesWhenItsTimeIsUp) {
  Link link({.reorder = 1.0});
  link.send(1);
  EXPECT_TRUE(link.out.empty());
  EXPECT_EQ(link.impairment.deadline(), link.now + Impairment::hold_max);
  link.wait_out();
  EXPECT_EQ(link.out.size(), 1u);
  EXPECT_EQ(link.impairment.counters().reordered, 0u) << "nothing has overtaken it";
}

TEST(Impairment, FullHoldLetsFramesPass) {
  Link link({.reorder = 1.0});
  link.send(Impairment::held_max + 1);
  EXPECT_EQ(link.impairment.counters().not_held, 1u);
  link.wait_out();
  EXPECT_EQ(link.out.size(), Impairment::held_max + 1);
}

TEST(Impairment, LeavesAddressResolutionAlone) {
  Link link({.loss = 1.0});
  link.send(10, /*ipv4=*/false);
  EXPECT_EQ(link.out.size(), 10u);
}

TEST(Impairment, SameSeedSameFate) {
  const Rates rates{.loss = 0.1, .duplicate = 0.1, .reorder = 0.1};
  Link first(rates, 3), second(rates, 3), other(rates, 4);
  for (Link* link : {&first, &second, &other}) link->send(1000);
  EXPECT_EQ(first.out, second.out);
  EXPECT_NE(first.out, other.out);
}

}  // namespace
}  // namespace cais::lab
