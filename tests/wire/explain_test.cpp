#include <gtest/gtest.h>

#include "wire/descriptor.hpp"

namespace cais::wire {
namespace {

CommDescriptor bfloat16_sum() {
  const std::uint64_t shape[] = {2048, 4096};
  return make_descriptor({.kind = OpKind::all_reduce,
                          .reduce_op = ReduceOp::sum,
                          .dtype = DType::bfloat16,
                          .ranks = 4,
                          .unit_elements = 2048 * 4096,
                          .shape = shape})
      .value();
}

TEST(ToString, SaysWhatPeopleWouldSay) {
  EXPECT_EQ(to_string(bfloat16_sum()), "all_reduce sum bfloat16 [2048, 4096] over 4 ranks");
  EXPECT_EQ(to_string(make_descriptor({.kind = OpKind::barrier, .ranks = 1}).value()),
            "barrier over 1 rank");
  EXPECT_EQ(to_string(make_descriptor({.kind = OpKind::broadcast,
                                       .dtype = DType::int64,
                                       .ranks = 2,
                                       .root = Rank(1),
                                       .unit_elements = 3})
                          .value()),
            "broadcast int64 [3] over 2 ranks, root 1");
  const std::uint64_t shape[] = {8, 6};
  EXPECT_EQ(to_string(make_descriptor({.kind = OpKind::all_gather,
                                       .dtype = DType::float32,
                                       .ranks = 3,
                                       .unit_elements = 16,
                                       .shape = shape,
                                       .shard_dim = 1})
                          .value()),
            "all_gather float32 [8, 6] sharded in dim 1 over 3 ranks");
}

TEST(ExplainMismatch, NamesBothRanksBothCallsAndWhatDiffers) {
  const std::uint64_t shape[] = {2048, 4096};
  const auto theirs = make_descriptor({.kind = OpKind::all_reduce,
                                       .reduce_op = ReduceOp::max,
                                       .dtype = DType::bfloat16,
                                       .ranks = 4,
                                       .unit_elements = 2048 * 4096,
                                       .shape = shape})
                          .value();
  EXPECT_EQ(explain_mismatch(bfloat16_sum(), Rank(0), theirs, Rank(3)),
            "mismatched collective: rank 0 called all_reduce sum bfloat16 [2048, 4096] over 4 "
            "ranks, rank 3 called all_reduce max bfloat16 [2048, 4096] over 4 ranks; they differ "
            "in reduce op (sum and max). All ranks of a group must call the same collectives in "
            "the same order.");
}

TEST(ExplainMismatch, SaysWhereSettingsDiffer) {
  auto theirs = bfloat16_sum();
  theirs.chunk_bytes = 65'536;
  theirs.fragment_bytes = 8192;
  EXPECT_EQ(explain_mismatch(bfloat16_sum(), Rank(1), theirs, Rank(2)),
            "mismatched collective: rank 1 called all_reduce sum bfloat16 [2048, 4096] over 4 "
            "ranks, rank 2 called all_reduce sum bfloat16 [2048, 4096] over 4 ranks; the calls "
            "agree, but the ranks' settings differ in fragment bytes (1024 and 8192), chunk bytes "
            "(262144 and 65536). All ranks of a group need the same settings.");
}

}  // namespace
}  // namespace cais::wire
