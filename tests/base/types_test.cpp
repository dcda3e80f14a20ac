// Names and numbers of the shared enumerations; serial arithmetic around the wrap.
#include "base/types.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <type_traits>

namespace cais {
namespace {

template <typename Enum, typename FromCode, typename FromName>
void expect_round_trips(FromCode from_code, FromName from_name, std::size_t known) {
  std::set<std::string> names;
  for (unsigned code = 0; code <= 255; ++code) {
    const std::optional<Enum> value = from_code(static_cast<std::uint8_t>(code));
    if (!value) continue;
    EXPECT_EQ(static_cast<unsigned>(*value), code);
    EXPECT_EQ(from_name(to_string(*value)), value) << to_string(*value);
    names.insert(std::string(to_string(*value)));
  }
  EXPECT_EQ(names.size(), known);
  EXPECT_FALSE(from_name(""));
  EXPECT_FALSE(from_name("unknown"));
}

TEST(Names, RoundTrip) {
  expect_round_trips<DType>(dtype_from, dtype_named, 13);
  expect_round_trips<ReduceOp>(reduce_op_from, reduce_op_named, 6);
  expect_round_trips<OpKind>(op_kind_from, op_kind_named, 9);
}

TEST(Names, OfNumbersThatMeanNothing) {
  EXPECT_EQ(to_string(static_cast<DType>(99)), "unknown");
  EXPECT_EQ(to_string(static_cast<ReduceOp>(99)), "unknown");
  EXPECT_EQ(to_string(static_cast<OpKind>(0)), "unknown");
  EXPECT_FALSE(dtype_from(0));
  EXPECT_FALSE(op_kind_from(0));
  EXPECT_FALSE(dtype_named("Float32"));
}

TEST(DTypes, HaveTheirSize) {
  EXPECT_EQ(size_of(DType::bfloat16), 2u);
  EXPECT_EQ(size_of(DType::int64), 8u);
  EXPECT_EQ(size_of(DType::bytes16), 16u);
  EXPECT_EQ(size_of(static_cast<DType>(99)), 0u);
  for (unsigned code = 0; code <= 255; ++code) {
    const auto dtype = dtype_from(static_cast<std::uint8_t>(code));
    if (!dtype) continue;
    EXPECT_GT(size_of(*dtype), 0u) << to_string(*dtype);
    EXPECT_EQ(is_opaque(*dtype), to_string(*dtype).starts_with("bytes"));
  }
}

TEST(Strong, OrdersItsOwnKind) {
  static_assert(!std::is_convertible_v<int, Rank>);
  static_assert(!std::is_convertible_v<Lane, Rank>);
  EXPECT_LT(Rank(2), Rank(3));
  EXPECT_EQ(SessionId(), SessionId(0));
}

TEST(Seq, ComparesAroundTheWrap) {
  constexpr std::uint32_t last = std::numeric_limits<std::uint32_t>::max();
  EXPECT_EQ(Seq(last) + 1, Seq(0));
  EXPECT_EQ(Seq(0) - 1, Seq(last));
  EXPECT_EQ(distance(Seq(last), Seq(2)), 3);
  EXPECT_EQ(distance(Seq(2), Seq(last)), -3);
  EXPECT_TRUE(before(Seq(last), Seq(0)));
  EXPECT_FALSE(before(Seq(0), Seq(last)));
  EXPECT_FALSE(before(Seq(last), Seq(last)));
}

TEST(Seq, ComparesOverHalfTheSpace) {
  constexpr std::uint32_t half = 1u << 31;
  for (const std::uint32_t start : {0u, 1u, half - 1, half, ~0u}) {
    EXPECT_TRUE(before(Seq(start), Seq(start) + (half - 1)));
    EXPECT_TRUE(before(Seq(start) - (half - 1), Seq(start)));
    EXPECT_FALSE(before(Seq(start) + (half - 1), Seq(start)));
  }
}

TEST(LanePosition, CountsTheRoundsOfSeqs) {
  LanePosition at{Seq(0xfffffffe)};
  EXPECT_EQ(at.round_of(Seq(0xfffffffe)), Round(0));
  EXPECT_EQ(at.round_of(Seq(0xffffffff)), Round(0));
  EXPECT_EQ(at.round_of(Seq(0)), Round(1));  // seen from before the wrap, and from behind it
  at.advance(Seq(2));
  EXPECT_EQ(at.round_of(Seq(0)), Round(1));
  EXPECT_EQ(at.round_of(Seq(0xffffffff)), Round(0));
  at.advance(Seq(1));  // no way back
  for (std::uint32_t round = 1; round < 5; ++round) {
    for (const std::uint32_t quarter : {0x40000000u, 0x80000000u, 0xc0000000u, 0xffffffffu}) {
      at.advance(Seq(quarter));
      EXPECT_EQ(at.round_of(Seq(quarter)), Round(round));
    }
    EXPECT_EQ(at.round_of(Seq(3)), Round(round + 1));
    at.advance(Seq(3));
  }
}

}  // namespace
}  // namespace cais
