#include "nir/plan.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "nir/targets/host/lower.hpp"
#include "tests/nir/random_descriptor.hpp"

namespace cais::nir {
namespace {

Plan plan_of(const wire::DescriptorSpec& spec) {
  return lower(wire::make_descriptor(spec).value()).value();
}

class EveryKind : public ::testing::TestWithParam<OpKind> {
 protected:
  /// Calls `check` with many plans of the kind; a failure names the seed.
  template <typename Check>
  void for_many(Check check) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      Rng rng(seed);
      const Plan plan = plan_of(random_spec(rng, GetParam()));
      SCOPED_TRACE("seed " + std::to_string(seed) + ": " + to_string(plan));
      check(plan);
      if (HasFailure()) return;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Plan, EveryKind, ::testing::ValuesIn(all_kinds),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(EveryKind, FragmentsCoverEveryByteOfEveryUnitOnce) {
  for_many([](const Plan& plan) {
    std::vector<std::uint64_t> covered(plan.units);
    for (std::uint32_t f = 0; f < plan.fragments(); ++f) {
      const Extent extent = plan.extent(f);
      ASSERT_LT(extent.unit, plan.units);
      ASSERT_EQ(extent.offset, covered[extent.unit]) << "fragment " << f << " leaves a gap";
      ASSERT_LE(extent.bytes, plan.fragment_bytes);
      ASSERT_TRUE(extent.bytes > 0 || plan.unit_bytes == 0) << "fragment " << f << " is empty";
      ASSERT_EQ(extent.bytes % size_of(plan.dtype), 0u) << "fragment " << f << " cuts an element";
      covered[extent.unit] += extent.bytes;
    }
    for (std::uint64_t bytes : covered) ASSERT_EQ(bytes, plan.unit_bytes);
  });
}

TEST_P(EveryKind, OnlyTheLastFragmentOfAUnitIsPadded) {
  for_many([](const Plan& plan) {
    for (std::uint32_t f = 0; f < plan.fragments(); ++f) {
      if ((f + 1) % plan.fragments_per_unit == 0) continue;
      ASSERT_EQ(plan.extent(f).bytes, plan.fragment_bytes) << "fragment " << f;
    }
  });
}

TEST_P(EveryKind, LanesShareTheFragmentsInEqualRangesInOrder) {
  for_many([](const Plan& plan) {
    std::uint32_t next = 0;
    for (std::uint8_t lane = 0; lane < plan.lanes; ++lane) {
      const FragmentRange range = plan.dealt_to(lane);
      ASSERT_EQ(range.begin, next);
      ASSERT_GE(range.count(), plan.fragments() / plan.lanes);
      ASSERT_LE(range.count(), plan.fragments() / plan.lanes + 1);
      next = range.end;
    }
    ASSERT_EQ(next, plan.fragments());
  });
}

TEST_P(EveryKind, ChunksAreConsecutiveAndStayInTheirUnit) {
  for_many([](const Plan& plan) {
    std::uint32_t fragments_in_chunk = 0;
    for (std::uint32_t f = 0; f < plan.fragments(); ++f) {
      const std::uint32_t chunk = plan.chunk_of(f);
      if (f == 0) {
        ASSERT_EQ(chunk, 0u);
        fragments_in_chunk = 1;
        continue;
      }
      const bool new_unit = plan.extent(f).unit != plan.extent(f - 1).unit;
      const bool full = fragments_in_chunk == plan.fragments_per_chunk;
      ASSERT_EQ(chunk, plan.chunk_of(f - 1) + (new_unit || full ? 1 : 0)) << "fragment " << f;
      fragments_in_chunk = new_unit || full ? 1 : fragments_in_chunk + 1;
    }
  });
}

TEST_P(EveryKind, WhatARankReceivesAddsUpToItsOutput) {
  const OpKind kind = GetParam();
  for_many([kind](const Plan& plan) {
    for (std::uint16_t r = 0; r < plan.ranks; ++r) {
      std::uint64_t received = 0;
      for (std::uint32_t f = 0; f < plan.fragments(); ++f) {
        const Extent extent = plan.extent(f);
        if (!plan.receives_payload(Rank(r), extent.unit)) continue;
        received += extent.bytes * (plan.combine == Combine::concat ? plan.ranks : 1u);
      }
      const bool is_root = r == plan.root;
      std::uint64_t units = 0;
      switch (kind) {
        case OpKind::all_reduce:
        case OpKind::reduce_scatter:
        case OpKind::scatter:
          units = 1;
          break;
        case OpKind::all_gather:
        case OpKind::all_to_all:
          units = plan.ranks;
          break;
        case OpKind::broadcast:
          units = is_root ? 0 : 1;
          break;
        case OpKind::reduce:
          units = is_root ? 1 : 0;
          break;
        case OpKind::gather:
          units = is_root ? plan.ranks : 0;
          break;
        case OpKind::barrier:
          units = 0;
          break;
      }
      // A group of one: the switch need not tell root from all.
      if (plan.ranks == 1 && wire::has_root(kind) && kind != OpKind::broadcast) {
        units = 1;
      }
      ASSERT_EQ(received, units * plan.unit_bytes) << "rank " << r;
    }
  });
}

TEST_P(EveryKind, ContributesFromTheRootAloneWhenRouting) {
  for_many([](const Plan& plan) {
    for (std::uint16_t r = 0; r < plan.ranks; ++r) {
      const bool expected =
          plan.unit_bytes != 0 && (plan.combine != Combine::route || r == plan.root);
      ASSERT_EQ(plan.contributes_payload(Rank(r)), expected) << "rank " << r;
    }
  });
}

TEST(Plan, OfTheLargestOpStaysInRange) {
  const Plan plan = plan_of({.kind = OpKind::all_gather,
                             .dtype = DType::int8,
                             .ranks = 64,
                             .unit_elements = wire::unit_bytes_max,
                             .fragment_bytes = 64'992,
                             .chunk_bytes = 1'048'576,
                             .lanes = 64});
  const Extent last = plan.extent(plan.fragments() - 1);
  EXPECT_EQ(last.offset + last.bytes, wire::unit_bytes_max);
  EXPECT_LE(last.offset / 8, 0xffffffffu) << "Header::offset counts steps of 8 bytes in 32 bits";
  EXPECT_EQ(plan.dealt_to(63).end, plan.fragments());
}

TEST(Plan, IsReadable) {
  EXPECT_EQ(to_string(plan_of({.kind = OpKind::all_reduce,
                               .reduce_op = ReduceOp::avg,
                               .dtype = DType::bfloat16,
                               .ranks = 4,
                               .unit_elements = 1'000'000,
                               .fragment_bytes = 8192,
                               .lanes = 4})),
            "reduce avg in float32 of bfloat16, to all, 4 ranks, root 0; 1 x 2000000 bytes, 248 "
            "fragments of 8080 each, 32 to a chunk, over 4 lanes");
}

}  // namespace
}  // namespace cais::nir
