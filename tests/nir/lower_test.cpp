#include "nir/targets/host/lower.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nir/build.hpp"
#include "nir/verify.hpp"
#include "tests/nir/random_descriptor.hpp"

namespace cais::nir {
namespace {

using ::testing::HasSubstr;

wire::DescriptorSpec spec_of(OpKind kind, ReduceOp op = ReduceOp::none) {
  return {.kind = kind,
          .reduce_op = op,
          .dtype = DType::bfloat16,
          .ranks = 4,
          .root = Rank(2),
          .unit_elements = 3000,
          .fragment_bytes = 1024};
}

std::string lowered(OpKind kind, ReduceOp op = ReduceOp::none) {
  return to_string(lower(wire::make_descriptor(spec_of(kind, op)).value()).value());
}

TEST(Lower, EachKindToItsPlan) {
  const std::string one = "; 1 x 6000 bytes, 6 fragments of 1008 each, 260 to a chunk, over 1 lane";
  const std::string per_rank =
      "; 4 x 6000 bytes, 6 fragments of 1008 each, 260 to a chunk, over 1 lane";
  EXPECT_EQ(lowered(OpKind::all_reduce, ReduceOp::sum),
            "reduce sum in float32 of bfloat16, to all, 4 ranks, root 0" + one);
  EXPECT_EQ(lowered(OpKind::all_reduce, ReduceOp::avg),
            "reduce avg in float32 of bfloat16, to all, 4 ranks, root 0" + one);
  EXPECT_EQ(lowered(OpKind::reduce, ReduceOp::max),
            "reduce max in float32 of bfloat16, to root, 4 ranks, root 2" + one);
  EXPECT_EQ(lowered(OpKind::reduce_scatter, ReduceOp::product),
            "reduce product in float32 of bfloat16, to owner, 4 ranks, root 0" + per_rank);
  EXPECT_EQ(lowered(OpKind::all_gather), "concat of bfloat16, to all, 4 ranks, root 0" + one);
  EXPECT_EQ(lowered(OpKind::gather), "concat of bfloat16, to root, 4 ranks, root 2" + one);
  EXPECT_EQ(lowered(OpKind::all_to_all),
            "concat of bfloat16, to owner, 4 ranks, root 0" + per_rank);
  EXPECT_EQ(lowered(OpKind::broadcast), "route of bfloat16, to all, 4 ranks, root 2" + one);
  EXPECT_EQ(lowered(OpKind::scatter), "route of bfloat16, to owner, 4 ranks, root 2" + per_rank);
  EXPECT_EQ(lowered(OpKind::barrier),
            "reduce of uint8, to all, 4 ranks, root 0; 1 x 0 bytes, 1 fragments of 0 each, 16384 "
            "to a chunk, over 1 lane");
}

TEST(Lower, TakesEveryDescriptorThatIsValid) {
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    Rng rng(seed);
    const auto spec = random_spec(rng, all_kinds[rng.below(std::size(all_kinds))]);
    const auto descriptor = wire::make_descriptor(spec).value();
    const auto plan = lower(descriptor);
    ASSERT_TRUE(plan.ok()) << "seed " << seed << ": " << plan.error().message;
    EXPECT_EQ(plan->lanes, descriptor.lanes);
    EXPECT_EQ(plan->unit_bytes, descriptor.unit_bytes);
    EXPECT_EQ(plan->accumulator, static_cast<DType>(descriptor.accumulator));
    EXPECT_EQ(plan->reduce_op, static_cast<ReduceOp>(descriptor.reduce_op));
  }
}

TEST(Lower, RefusesInvalidDescriptorsAndShapesOfTheSum) {
  auto descriptor = wire::make_descriptor(spec_of(OpKind::all_reduce, ReduceOp::sum)).value();
  descriptor.shape_of_sum = 5;
  EXPECT_EQ(lower(descriptor).error().code, ErrorCode::unsupported);
  EXPECT_THAT(lower(descriptor).error().message, HasSubstr("shape_of_sum is 5"));
  descriptor.ranks = 0;
  EXPECT_EQ(lower(descriptor).error().code, ErrorCode::malformed);
}

TensorOp op_of(OpKind kind, ReduceOp op = ReduceOp::none) {
  return build(wire::make_descriptor(spec_of(kind, op)).value()).value();
}

/// The same op under another schedule; it must still verify.
std::string refusal(TensorOp op, std::initializer_list<Stage> stages) {
  op.schedule = {};
  for (const Stage& stage : stages) op.schedule.append(stage);
  const auto verified = verify(op);
  EXPECT_TRUE(verified.ok()) << verified.error().message;
  const auto plan = lower(op);
  EXPECT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, ErrorCode::unsupported);
  return plan.error().message;
}

TEST(Lower, SaysWhatTheHostTargetCannotDo) {
  const TensorOp sum = op_of(OpKind::all_reduce, ReduceOp::sum);
  const RankSet all = RankSet::all(4);
  const RankSet two{0b0011};
  const Stage add = Accumulate{ReduceOp::sum, DType::float32};
  const Stage round = Round{DType::bfloat16};
  const Stage to_all = Scatter{all, false};
  EXPECT_EQ(refusal(sum, {Load{two}, add, round, to_all}),
            "tensor_op all_reduce does not fit the host target, which loads from all ranks or one");
  EXPECT_THAT(refusal(sum, {Load{RankSet::only(Rank(1))}, add, round, to_all}),
              HasSubstr("combines the units of all ranks"));
  EXPECT_THAT(refusal(sum, {Load{all}, add, Divide{3}, round, to_all}),
              HasSubstr("divides by the number of ranks"));
  EXPECT_THAT(refusal(sum, {Load{all}, add, round, Scatter{two, false}}),
              HasSubstr("hands a value out to all ranks or one"));
  EXPECT_THAT(refusal(op_of(OpKind::broadcast),
                      {Load{RankSet::only(Rank(0))}, Scatter{RankSet::only(Rank(1)), false}}),
              HasSubstr("routes to all ranks or to the owners"));
  EXPECT_THAT(refusal(op_of(OpKind::scatter), {Load{RankSet::only(Rank(0))}, Scatter{two, true}}),
              HasSubstr("hands units out to all their owners"));

  TensorOp wide = sum;
  wide.output.dtype = DType::float32;
  EXPECT_THAT(refusal(wide, {Load{all}, add, to_all}), HasSubstr("the type that came in"));

  TensorOp guarded = sum;
  guarded.guard_bits = 2;
  EXPECT_THAT(refusal(guarded, {Load{all}, add, round, to_all}), HasSubstr("guard bits"));
}

TEST(Build, StacksUnitsInFrontOfTheShape) {
  const std::uint64_t shape[] = {8, 12};
  wire::DescriptorSpec spec = spec_of(OpKind::all_gather);
  spec.unit_elements = 24;
  spec.shape = shape;
  spec.shard_dim = 1;
  TensorOp op = build(wire::make_descriptor(spec).value()).value();
  EXPECT_EQ(op.input, (TensorType{DType::bfloat16, 2, {8, 3}}));
  EXPECT_EQ(op.output, (TensorType{DType::bfloat16, 3, {4, 8, 3}}));
  EXPECT_EQ(op.shard_dim, 1);

  spec.kind = OpKind::reduce_scatter;
  spec.reduce_op = ReduceOp::sum;
  op = build(wire::make_descriptor(spec).value()).value();
  EXPECT_EQ(op.input, (TensorType{DType::bfloat16, 3, {4, 8, 3}}));
  EXPECT_EQ(op.output, (TensorType{DType::bfloat16, 2, {8, 3}}));

  spec.kind = OpKind::all_reduce;
  spec.unit_elements = 96;
  op = build(wire::make_descriptor(spec).value()).value();
  EXPECT_EQ(op.input, (TensorType{DType::bfloat16, 2, {8, 12}}));
  EXPECT_EQ(op.output, op.input);
}

}  // namespace
}  // namespace cais::nir
