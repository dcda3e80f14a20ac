#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/rng.hpp"
#include "wire/descriptor.hpp"

namespace cais::wire {
namespace {

using ::testing::HasSubstr;

DescriptorSpec all_reduce(std::uint64_t elements) {
  return {.kind = OpKind::all_reduce,
          .reduce_op = ReduceOp::sum,
          .dtype = DType::float32,
          .ranks = 4,
          .unit_elements = elements,
          .fragment_bytes = 1024,
          .lanes = 8};
}

TEST(MakeDescriptor, KeepsSmallOpsInOneLane) {
  const auto lanes = [](std::uint64_t fragments) {
    return int{make_descriptor(all_reduce(fragments * 256)).value().lanes};
  };
  EXPECT_EQ(lanes(0), 1);
  EXPECT_EQ(lanes(1), 1);
  EXPECT_EQ(lanes(15), 1);
  EXPECT_EQ(lanes(16), 2);
  EXPECT_EQ(lanes(63), 7);
  EXPECT_EQ(lanes(64), 8);
  EXPECT_EQ(lanes(100'000), 8);
}

TEST(MakeDescriptor, CountsTheFragmentsOfAllUnits) {
  DescriptorSpec spec = all_reduce(64 * 256);
  spec.kind = OpKind::reduce_scatter;  // 4 units of 64 fragments
  EXPECT_EQ(make_descriptor(spec).value().lanes, 8);
}

TEST(MakeDescriptor, SendsSmallOpsInSmallFragments) {
  const auto fragment = [](std::uint64_t elements) {
    return make_descriptor(all_reduce(elements)).value().fragment_bytes;
  };
  EXPECT_EQ(fragment(0), 16u);
  EXPECT_EQ(fragment(1), 16u);
  EXPECT_EQ(fragment(5), 32u);
  EXPECT_EQ(fragment(255), 1024u);
}

TEST(MakeDescriptor, CutsAGatherSmallerSoThatNoServerForwardsAll) {
  DescriptorSpec gather = all_reduce(4 * 256);  // 4 KB from each of 4 ranks
  gather.kind = OpKind::all_gather;
  gather.reduce_op = ReduceOp::none;
  gather.fragment_bytes = 8192;
  const CommDescriptor small = make_descriptor(gather).value();
  EXPECT_EQ(small.lanes, 2);
  EXPECT_EQ(small.fragment_bytes, 2048u);
  gather.unit_elements = 16 * 256;
  const CommDescriptor spread = make_descriptor(gather).value();
  EXPECT_EQ(spread.lanes, 8);
  EXPECT_EQ(spread.fragment_bytes, 2048u);
}

TEST(MakeDescriptor, DealsTheLanesTheSameNumberOfFullFragments) {
  EXPECT_EQ(make_descriptor(all_reduce(257)).value().fragment_bytes, 528u);  // two halves
  const CommDescriptor uneven = make_descriptor(all_reduce(65 * 256)).value();
  ASSERT_EQ(uneven.lanes, 8);
  EXPECT_EQ(fragments_per_unit(uneven.unit_bytes, uneven.fragment_bytes), 72u);
  DescriptorSpec scatter = all_reduce(33 * 256);
  scatter.kind = OpKind::reduce_scatter;  // 4 units: two lanes each
  const CommDescriptor shards = make_descriptor(scatter).value();
  EXPECT_EQ(fragments_per_unit(shards.unit_bytes, shards.fragment_bytes), 34u);
}

TEST(MakeDescriptor, AccumulatesHalvesInFloat32OnlyWhereTheyAreAdded) {
  DescriptorSpec spec = all_reduce(64);
  spec.dtype = DType::bfloat16;
  EXPECT_EQ(make_descriptor(spec).value().accumulator, static_cast<std::uint8_t>(DType::float32));
  spec.kind = OpKind::broadcast;
  spec.reduce_op = ReduceOp::none;
  EXPECT_EQ(make_descriptor(spec).value().accumulator, static_cast<std::uint8_t>(DType::bfloat16));
}

TEST(MakeDescriptor, FoldsLeadingDims) {
  const std::vector<std::uint64_t> shape{2, 3, 4, 5, 6, 7, 8};
  DescriptorSpec spec = all_reduce(2 * 3 * 4 * 5 * 6 * 7 * 8);
  spec.shape = shape;
  spec.shard_dim = 4;
  const CommDescriptor descriptor = make_descriptor(spec).value();
  EXPECT_EQ(descriptor.dims, 5);
  EXPECT_THAT(descriptor.shape, ::testing::ElementsAre(24, 5, 6, 7, 8));
  EXPECT_EQ(descriptor.shard_dim, 2);
  spec.shard_dim = 1;
  EXPECT_EQ(make_descriptor(spec).value().shard_dim, 0);
}

TEST(MakeDescriptor, WithoutAShapeThereIsOneDimOfAllShards) {
  DescriptorSpec spec{
      .kind = OpKind::all_gather, .dtype = DType::int8, .ranks = 3, .unit_elements = 10};
  const CommDescriptor descriptor = make_descriptor(spec).value();
  EXPECT_EQ(descriptor.dims, 1);
  EXPECT_EQ(descriptor.shape[0], 30u);
}

TEST(MakeDescriptor, IgnoresWhatTheKindDoesNotHave) {
  DescriptorSpec spec = all_reduce(64);
  const DescriptorHash expected = hash(make_descriptor(spec).value());
  spec.root = Rank(3);
  EXPECT_EQ(hash(make_descriptor(spec).value()), expected);

  DescriptorSpec barrier{.kind = OpKind::barrier, .ranks = 4, .lanes = 8};
  const DescriptorHash plain = hash(make_descriptor(barrier).value());
  barrier.dtype = DType::float64;
  barrier.unit_elements = 12;
  barrier.reduce_op = ReduceOp::sum;
  barrier.shard_dim = 0;
  EXPECT_EQ(hash(make_descriptor(barrier).value()), plain);
}

TEST(MakeDescriptor, NamesWhatIsOutOfRange) {
  const auto refusal = [](auto change) {
    DescriptorSpec spec = all_reduce(64);
    change(spec);
    const auto made = make_descriptor(spec);
    EXPECT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::invalid_argument);
    return made.error().message;
  };
  EXPECT_THAT(refusal([](auto& s) { s.ranks = 0; }), HasSubstr("ranks is 0"));
  EXPECT_THAT(refusal([](auto& s) { s.fragment_bytes = 0; }), HasSubstr("fragment_bytes is 0"));
  EXPECT_THAT(refusal([](auto& s) { s.lanes = 0; }), HasSubstr("lanes is 0"));
  EXPECT_THAT(refusal([](auto& s) { s.lanes = 65; }), HasSubstr("lanes is 65"));
  EXPECT_THAT(refusal([](auto& s) { s.chunk_bytes = 1; }), HasSubstr("chunk_bytes is 1"));
  EXPECT_THAT(refusal([](auto& s) { s.unit_elements = ~0ull; }), HasSubstr("elements"));
  EXPECT_THAT(refusal([](auto& s) { s.reduce_op = ReduceOp::none; }), HasSubstr("reduce_op"));
  EXPECT_THAT(refusal([](auto& s) { s.kind = OpKind::reduce, s.root = Rank(4); }),
              HasSubstr("root is 4, must be in [0, 4)"));
  const std::uint64_t shape[] = {8, 9};
  EXPECT_THAT(refusal([&](auto& s) { s.shape = shape; }), HasSubstr("must be 64 elements"));
  EXPECT_THAT(refusal([&](auto& s) { s.shape = shape, s.shard_dim = 2; }),
              HasSubstr("shard_dim is 2"));
  EXPECT_THAT(refusal([](auto& s) { s.shard_dim = -3; }), HasSubstr("shard_dim is -3"));
  // (2^64 + 64) elements in six dims: modulo 2^64 they would look right.
  const std::uint64_t wrapping[] = {320, 57'646'075'230'342'349, 1, 1, 1, 1};
  EXPECT_THAT(refusal([&](auto& s) { s.shape = wrapping; }), HasSubstr("shape"));
}

TEST(MakeDescriptor, AcceptsEverythingItShould) {
  Rng rng(7);
  const DType dtypes[] = {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                          DType::int8,    DType::uint8,   DType::int32,   DType::int64};
  for (int round = 0; round < 20'000; ++round) {
    DescriptorSpec spec;
    spec.kind = static_cast<OpKind>(1 + rng.below(9));
    if (reduces(spec.kind)) spec.reduce_op = static_cast<ReduceOp>(1 + rng.below(5));
    spec.dtype = dtypes[rng.below(std::size(dtypes))];
    spec.ranks = static_cast<std::uint16_t>(1 + rng.below(ranks_max));
    spec.root = Rank(static_cast<std::uint16_t>(rng.below(spec.ranks)));
    spec.unit_elements = rng.below(1ull << rng.below(25));
    spec.fragment_bytes = static_cast<std::uint32_t>(16 * (1 + rng.below(4062)));
    spec.chunk_bytes = static_cast<std::uint32_t>(chunk_bytes_min +
                                                  rng.below(chunk_bytes_max - chunk_bytes_min + 1));
    spec.lanes = static_cast<std::uint8_t>(1 + rng.below(lanes_max));
    spec.group = rng.next();
    const auto made = make_descriptor(spec);
    if (!made && spec.unit_elements > 1u << 20) continue;  // too many tiny fragments
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_TRUE(parse_descriptor(as_bytes(*made)).ok());
    EXPECT_LE(made->lanes, spec.lanes);
  }
}

}  // namespace
}  // namespace cais::wire
