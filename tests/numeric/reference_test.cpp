// The scalar reference, against cases made by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "numeric/half.hpp"
#include "numeric/reduce.hpp"

namespace cais::numeric {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// One element per rank, reduced to one element.
template <typename Output, typename Input>
Output reduced(const Reduction& reduction, const std::vector<Input>& contributions) {
  std::vector<const std::byte*> inputs;
  for (const Input& contribution : contributions) {
    inputs.push_back(reinterpret_cast<const std::byte*>(&contribution));
  }
  Output result{};
  std::byte* output = reinterpret_cast<std::byte*>(&result);
  EXPECT_TRUE(reduce_reference(reduction, {&output, 1}, inputs, 1));
  return result;
}

template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::float32;
  if constexpr (std::is_same_v<T, double>) return DType::float64;
  if constexpr (std::is_same_v<T, std::int8_t>) return DType::int8;
  if constexpr (std::is_same_v<T, std::uint8_t>) return DType::uint8;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::int32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DType::int64;
}

template <typename T>
T reduced(ReduceOp op, const std::vector<T>& contributions) {
  const auto ranks = static_cast<std::uint32_t>(contributions.size());
  return reduced<T, T>({op, dtype_of<T>(), dtype_of<T>(), ranks}, contributions);
}

float reduced_bfloat16(ReduceOp op, const std::vector<float>& contributions) {
  std::vector<std::uint16_t> halves;
  for (const float value : contributions) halves.push_back(BFloat16::encode(value));
  const Reduction reduction{op, DType::bfloat16, DType::bfloat16,
                            static_cast<std::uint32_t>(halves.size())};
  return BFloat16::decode(reduced<std::uint16_t>(reduction, halves));
}

TEST(Reference, SumsInRankOrder) {
  EXPECT_EQ(reduced<float>(ReduceOp::sum, {1e8f, 1.0f, -1e8f}), 0.0f);
  EXPECT_EQ(reduced<float>(ReduceOp::sum, {1e8f, -1e8f, 1.0f}), 1.0f);
  EXPECT_EQ(reduced<double>(ReduceOp::sum, {1e16, 1.0, -1e16}), 0.0);
}

TEST(Reference, RoundsHalvesOnce) {
  // Each addition rounded to bfloat16 would give 1: 1 + 2^-8 is a tie that goes down to 1.
  EXPECT_EQ(reduced_bfloat16(ReduceOp::sum, {1.0f, 0x1p-8f, 0x1p-8f}), 1.0f + 0x1p-7f);
  // 256 ones: rounded at every step the sum would stick at 256 = 2^8, where the spacing is 2.
  EXPECT_EQ(reduced_bfloat16(ReduceOp::sum, {256.0f, 1.0f, 1.0f, 1.0f, 1.0f}), 260.0f);
  // The quotient is rounded, not the sum too: 263 / 3 is nearest to 87.5, but 263 would first be
  // rounded to 264, and 264 / 3 is 88.
  EXPECT_EQ(reduced_bfloat16(ReduceOp::avg, {256.0f, 7.0f, 0.0f}), 87.5f);
}

TEST(Reference, PartialsOfHalvesAreExactFloats) {
  const std::vector<std::uint16_t> halves{BFloat16::encode(1.0f), BFloat16::encode(0x1p-8f)};
  const Reduction partial{ReduceOp::sum, DType::bfloat16, DType::float32, 1};
  EXPECT_EQ(reduced<float>(partial, halves), 1.0f + 0x1p-8f);
  const Reduction last{ReduceOp::avg, DType::float32, DType::float16, 4};
  EXPECT_EQ(reduced<std::uint16_t>(last, std::vector<float>{1.0f, 3.0f}), Float16::encode(1.0f));
}

TEST(Reference, IntegersWrap) {
  EXPECT_EQ(reduced<std::int8_t>(ReduceOp::sum, {127, 1}), -128);
  EXPECT_EQ(reduced<std::uint8_t>(ReduceOp::sum, {255, 2}), 1);
  EXPECT_EQ(reduced<std::int32_t>(ReduceOp::sum, {INT32_MIN, -1}), INT32_MAX);
  EXPECT_EQ(reduced<std::int64_t>(ReduceOp::sum, {INT64_MAX, INT64_MAX}), -2);
  EXPECT_EQ(reduced<std::int8_t>(ReduceOp::product, {-128, -1}), -128);
  EXPECT_EQ(reduced<std::int8_t>(ReduceOp::product, {-3, 50}), 106);
  EXPECT_EQ(reduced<std::int32_t>(ReduceOp::product, {1 << 16, 1 << 16, 7}), 0);
  EXPECT_EQ(reduced<std::int64_t>(ReduceOp::product, {INT64_MIN, -1}), INT64_MIN);
}

TEST(Reference, AveragesOfIntegersGoTowardZero) {
  EXPECT_EQ(reduced<std::int32_t>(ReduceOp::avg, {-3, -4}), -3);
  EXPECT_EQ(reduced<std::int32_t>(ReduceOp::avg, {3, 4}), 3);
  EXPECT_EQ(reduced<std::int8_t>(ReduceOp::avg, {-7, 0}), -3);
  EXPECT_EQ(reduced<std::uint8_t>(ReduceOp::avg, {200, 100}), 22);  // 300 wraps to 44
  EXPECT_EQ(reduced<std::int64_t>(ReduceOp::avg, {INT64_MIN, 0}), INT64_MIN / 2);
}

TEST(Reference, AveragesAreQuotients) {
  EXPECT_EQ(reduced<float>(ReduceOp::avg, {1.0f, 0.0f, 0.0f}), 1.0f / 3.0f);
  // A product with 1/49 rounded would give 0x1.fffffep-1.
  EXPECT_EQ(reduced<double>(ReduceOp::avg, std::vector<double>(49, 1.0)), 1.0);
}

TEST(Reference, MinAndMaxPropagateNan) {
  for (const auto& contributions :
       {std::vector<float>{nan, 1.0f, infinity}, {1.0f, nan, -infinity}, {-infinity, 1.0f, -nan}}) {
    EXPECT_TRUE(std::isnan(reduced<float>(ReduceOp::min, contributions)));
    EXPECT_TRUE(std::isnan(reduced<float>(ReduceOp::max, contributions)));
  }
}

TEST(Reference, NegativeZeroIsLessThanPositiveZero) {
  for (const auto& contributions : {std::vector<float>{-0.0f, 0.0f}, {0.0f, -0.0f}}) {
    EXPECT_TRUE(std::signbit(reduced<float>(ReduceOp::min, contributions)));
    EXPECT_FALSE(std::signbit(reduced<float>(ReduceOp::max, contributions)));
  }
  EXPECT_TRUE(std::signbit(reduced<float>(ReduceOp::sum, {-0.0f, -0.0f})));
}

TEST(Reference, OfOneRankIsItsContribution) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::product}) {
    EXPECT_EQ(reduced<float>(op, {-7.5f}), -7.5f);
    EXPECT_EQ(reduced<std::uint8_t>(op, {200}), 200);
  }
}

TEST(Reference, RefusesTypesThatDoNotFit) {
  const std::byte input{};
  const std::byte* inputs[] = {&input};
  std::byte* const* outputs = nullptr;
  const auto computes = [&](const Reduction& reduction) {
    return reduce_reference(reduction, {outputs, 0}, inputs, 0);
  };
  EXPECT_TRUE(computes({ReduceOp::sum, DType::int8, DType::int8, 1}));
  EXPECT_FALSE(computes({ReduceOp::sum, DType::int8, DType::float32, 1}));
  EXPECT_FALSE(computes({ReduceOp::sum, DType::bytes4, DType::bytes4, 1}));
  EXPECT_FALSE(computes({ReduceOp::sum, DType::float16, DType::bfloat16, 1}));
  EXPECT_FALSE(computes({ReduceOp::none, DType::float32, DType::float32, 1}));
  EXPECT_FALSE(computes({ReduceOp::avg, DType::float32, DType::float32, 0}));
}

}  // namespace
}  // namespace cais::numeric
