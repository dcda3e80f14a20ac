#include "nir/verify.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "nir/build.hpp"
#include "tests/nir/random_descriptor.hpp"

namespace cais::nir {
namespace {

constexpr std::uint16_t ranks = 4;
constexpr RankSet all = RankSet::all(ranks);

/// all_reduce sum bfloat16 [64] over 4 ranks.
TensorOp sum_op() {
  return build(wire::make_descriptor({.kind = OpKind::all_reduce,
                                      .reduce_op = ReduceOp::sum,
                                      .dtype = DType::bfloat16,
                                      .ranks = ranks,
                                      .unit_elements = 64})
                   .value())
      .value();
}

std::string refusal(const TensorOp& op) {
  const auto result = verify(op);
  if (result.ok()) return "accepted";
  EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
  return result.error().message;
}

std::string refusal(std::initializer_list<Stage> stages) {
  TensorOp op = sum_op();
  op.schedule = {};
  for (const Stage& stage : stages) op.schedule.append(stage);
  const std::string message = refusal(op);
  const std::string prefix = "tensor_op all_reduce: ";
  EXPECT_EQ(message.substr(0, prefix.size()), prefix);
  return message.substr(std::min(message.size(), prefix.size()));
}

const Stage add = Accumulate{ReduceOp::sum, DType::float32};
const Stage narrow = Round{DType::bfloat16};
const Stage to_all = Scatter{all, false};

TEST(Verify, AcceptsWhatIsBuilt) {
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    Rng rng(seed);
    const auto spec = random_spec(rng, all_kinds[rng.below(std::size(all_kinds))]);
    const auto verified = verify(build(wire::make_descriptor(spec).value()).value());
    ASSERT_TRUE(verified.ok()) << "seed " << seed << ": " << verified.error().message;
  }
}

TEST(Verify, RefusesSchedulesThatDoNotConnect) {
  EXPECT_EQ(refusal({}), "the schedule does not end in a scatter");
  EXPECT_EQ(refusal({Load{all}, add, narrow}), "the schedule does not end in a scatter");
  EXPECT_EQ(refusal({add}), "stage 1 (accumulate) must follow a load");
  EXPECT_EQ(refusal({Load{all}, Load{all}}), "stage 2 (load) only the first stage loads");
  EXPECT_EQ(refusal({Load{all}, to_all}), "stage 2 (scatter) the loaded units were not combined");
  EXPECT_EQ(refusal({to_all}), "stage 1 (scatter) there is no value to hand out");
  EXPECT_EQ(refusal({Load{all}, add, narrow, to_all, to_all}),
            "stage 5 (scatter) there is no value to hand out");
  EXPECT_EQ(refusal({Load{all}, add, Concatenate{}}), "stage 3 (concatenate) must follow a load");
  EXPECT_EQ(refusal({Load{all}, add, narrow, to_all, add}),
            "stage 5 (accumulate) must follow a load");
  EXPECT_EQ(refusal({Load{all}, Concatenate{}, Divide{4}}), "stage 3 (divide) must follow a sum");
  EXPECT_EQ(refusal({Load{all}, add, Divide{4}, Divide{4}}), "stage 4 (divide) must follow a sum");
  EXPECT_EQ(refusal({Load{all}, add, narrow, Divide{4}}), "stage 4 (divide) must follow a sum");
  EXPECT_EQ(refusal({Load{all}, Accumulate{ReduceOp::max, DType::float32}, Divide{4}}),
            "stage 3 (divide) must follow a sum");
}

TEST(Verify, RefusesOperandsThatMakeNoSense) {
  EXPECT_EQ(refusal({Load{RankSet{}}}), "stage 1 (load) names no rank");
  EXPECT_EQ(refusal({Load{RankSet::all(5)}}),
            "stage 1 (load) names a rank that the group of 4 does not have");
  EXPECT_EQ(refusal({Load{all}, Accumulate{ReduceOp::avg, DType::float32}}),
            "stage 2 (accumulate) must be sum, min, max or product, not avg");
  EXPECT_EQ(refusal({Load{all}, Accumulate{ReduceOp::sum, DType::int32}}),
            "stage 2 (accumulate) takes bfloat16 in int32, must be the same type, or float32 for "
            "halves");
  EXPECT_EQ(refusal({Load{all}, Join{}}), "stage 2 (join) would lose 64 elements of each rank");
  EXPECT_EQ(refusal({Load{all}, add, Divide{0}}), "stage 3 (divide) divides by zero");
  EXPECT_EQ(refusal({Load{all}, add, Round{DType::int8}}),
            "stage 3 (round) makes a half of a float32 value");
  EXPECT_EQ(refusal({Load{all}, add, narrow, Scatter{RankSet::all(9), false}}),
            "stage 4 (scatter) names a rank that the group of 4 does not have");
  EXPECT_EQ(refusal({Load{all}, add, narrow, Scatter{all, true}}),
            "stage 4 (scatter) hands out 4 units, but there are 1");
}

TEST(Verify, RefusesOutputsThatTheScheduleDoesNotMake) {
  EXPECT_EQ(refusal({Load{all}, add, to_all}),
            "the schedule makes float32, but the output is bfloat16");
  EXPECT_EQ(refusal({Load{all}, Concatenate{}, to_all}),
            "the schedule makes 256 elements, but the output has 64");
}

TEST(Verify, RefusesFieldsOutOfRange) {
  const auto with = [](auto change) {
    TensorOp op = sum_op();
    change(op);
    return refusal(op);
  };
  EXPECT_EQ(with([](auto& op) { op.ranks = 65; }),
            "tensor_op all_reduce: ranks is 65, must be in [1, 64]");
  EXPECT_EQ(with([](auto& op) { op.units = 3; }),
            "tensor_op all_reduce: units is 3, must be 1 or the ranks");
  EXPECT_EQ(with([](auto& op) { op.input.shape[0] = 63; }),
            "tensor_op all_reduce: the input has 63 elements, but 1 units hold 64");
  EXPECT_EQ(with([](auto& op) { op.input.dims = 7; }),
            "tensor_op all_reduce: a tensor has more dims than 6");
  const std::string tiling =
      "tensor_op all_reduce: the tiling needs a lane, fragments in steps of 16 bytes, and chunks "
      "no smaller than a fragment";
  EXPECT_EQ(with([](auto& op) { op.tiling.lanes = 0; }), tiling);
  EXPECT_EQ(with([](auto& op) { op.tiling.fragment_bytes = 40; }), tiling);
  EXPECT_EQ(with([](auto& op) { op.tiling.chunk_bytes = 16; }), tiling);
  TensorOp opaque = sum_op();
  opaque.input.dtype = DType::bytes2;
  EXPECT_EQ(refusal(opaque),
            "tensor_op all_reduce: stage 2 (accumulate) cannot add bytes2, it is "
            "opaque");
}

}  // namespace
}  // namespace cais::nir
