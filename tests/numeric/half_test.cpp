// The 16-bit formats in plain arithmetic, against numbers worked out by hand.
#include "numeric/half.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace cais::numeric {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST(Float16, DecodesKnownNumbers) {
  EXPECT_EQ(Float16::decode(0x0000), 0.0f);
  EXPECT_EQ(Float16::decode(0x3c00), 1.0f);
  EXPECT_EQ(Float16::decode(0xc000), -2.0f);
  EXPECT_EQ(Float16::decode(0x3555), 0x1.554p-2f);  // the nearest to 1/3
  EXPECT_EQ(Float16::decode(0x0400), 0x1p-14f);     // the least normal
  EXPECT_EQ(Float16::decode(0x03ff), 0x3ffp-24f);   // the greatest denormal
  EXPECT_EQ(Float16::decode(0x0001), 0x1p-24f);     // the least denormal
  EXPECT_EQ(Float16::decode(0x7bff), 65504.0f);     // the greatest
  EXPECT_EQ(Float16::decode(0x7c00), infinity);
  EXPECT_EQ(Float16::decode(0xfc00), -infinity);
  EXPECT_TRUE(std::isnan(Float16::decode(0x7c01)));
  EXPECT_TRUE(std::signbit(Float16::decode(0x8000)));
}

TEST(BFloat16, DecodesTheUpperHalfOfAFloat) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto expected = std::bit_cast<float>(bits << 16);
    const float decoded = BFloat16::decode(static_cast<std::uint16_t>(bits));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(decoded)) << bits;
    } else {
      EXPECT_EQ(decoded, expected) << bits;
      EXPECT_EQ(std::signbit(decoded), std::signbit(expected)) << bits;
    }
  }
}

TEST(Float16, RoundsToNearestEven) {
  EXPECT_EQ(Float16::encode(1.0f + 0x1p-11f), 0x3c00);             // a tie, down to even
  EXPECT_EQ(Float16::encode(1.0f + 0x3p-11f), 0x3c02);             // a tie, up to even
  EXPECT_EQ(Float16::encode(1.0f + 0x1p-11f + 0x1p-23f), 0x3c01);  // just above the tie
  EXPECT_EQ(Float16::encode(0x1p-25f), 0x0000);                    // half of the least denormal
  EXPECT_EQ(Float16::encode(0x1.000002p-25f), 0x0001);
  EXPECT_EQ(Float16::encode(0x3p-25f), 0x0002);          // a tie among denormals
  EXPECT_EQ(Float16::encode(0x1.ffcp-15f), 0x03ff + 1);  // carries into the normals
  EXPECT_EQ(Float16::encode(-0x1p-40f), 0x8000);
}

TEST(Float16, OverflowsToInfinity) {
  EXPECT_EQ(Float16::encode(65519.0f), 0x7bff);
  EXPECT_EQ(Float16::encode(65520.0f), 0x7c00);  // the tie between the greatest and 65536
  EXPECT_EQ(Float16::encode(-1e30f), 0xfc00);
  EXPECT_EQ(Float16::encode(-infinity), 0xfc00);
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(BFloat16::encode(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(BFloat16::encode(1.0f + 0x3p-8f), 0x3f82);
  EXPECT_EQ(BFloat16::encode(1.0f + 0x1p-8f + 0x1p-23f), 0x3f81);
  EXPECT_EQ(BFloat16::encode(0x1p-134f), 0x0000);  // half of the least denormal
  EXPECT_EQ(BFloat16::encode(0x3p-134f), 0x0002);
  EXPECT_EQ(BFloat16::encode(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(HalfFormats, KeepNan) {
  for (const float value : {nan, -nan}) {
    EXPECT_TRUE(std::isnan(Float16::decode(Float16::encode(value))));
    EXPECT_TRUE(std::isnan(BFloat16::decode(BFloat16::encode(value))));
  }
}

template <typename Format>
void expect_round_trips() {
  for (std::uint32_t number = 0; number <= 0xffff; ++number) {
    const auto bits = static_cast<std::uint16_t>(number);
    const float value = Format::decode(bits);
    if (std::isnan(value)) {
      EXPECT_GT(bits & 0x7fff, Format::infinity);
    } else {
      EXPECT_EQ(Format::encode(value), bits);
    }
  }
}

TEST(HalfFormats, EveryNumberRoundTrips) {
  expect_round_trips<Float16>();
  expect_round_trips<BFloat16>();
}

}  // namespace
}  // namespace cais::numeric
