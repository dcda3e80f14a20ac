// The generator gives the same numbers everywhere: those of the published algorithm.
#include "base/rng.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace cais {
namespace {

TEST(Rng, IsSplitMix64) {
  // The first numbers of the authors' reference implementation for the seed 1234567.
  Rng rng(1234567);
  for (const std::uint64_t expected :
       {6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u,
        16408922859458223821u}) {
    EXPECT_EQ(rng.next(), expected);
  }
}

TEST(Rng, IsDeterminedByItsSeed) {
  Rng a(5), b(5), c(6);
  EXPECT_EQ(a.next(), b.next());
  EXPECT_NE(a.next(), c.next());
}

TEST(Rng, StaysBelowTheBound) {
  Rng rng(1);
  std::uint64_t seen = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t number = rng.below(10);
    ASSERT_LT(number, 10u);
    seen |= 1u << number;
  }
  EXPECT_EQ(seen, 0x3ffu);
  EXPECT_EQ(rng.below(1), 0u);
}

TEST(Rng, ChancesAreAboutRight) {
  Rng rng(2);
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) hits += rng.chance(0.02);
  EXPECT_NEAR(hits, 200, 60);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(rng.chance(0.0));
    EXPECT_TRUE(rng.chance(1.0));
  }
}

}  // namespace
}  // namespace cais
