#include "wire/descriptor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "tests/wire/random_bytes.hpp"

namespace cais::wire {
namespace {

using ::testing::HasSubstr;

/// all_gather float32 [8, 6] sharded in dim 1 over 3 ranks.
CommDescriptor example() {
  const std::uint64_t shape[] = {8, 6};
  return make_descriptor({.kind = OpKind::all_gather,
                          .dtype = DType::float32,
                          .ranks = 3,
                          .unit_elements = 16,
                          .shape = shape,
                          .shard_dim = 1,
                          .group = 0x0807060504030201})
      .value();
}

CommDescriptor all_reduce_example() {
  return make_descriptor({.kind = OpKind::all_reduce,
                          .reduce_op = ReduceOp::sum,
                          .dtype = DType::bfloat16,
                          .ranks = 5,
                          .unit_elements = 16})
      .value();
}

TEST(Descriptor, LiesOnTheWireAsTheDocumentDrawsIt) {
  std::array<std::uint8_t, descriptor_bytes> expected{};
  const auto put = [&](std::size_t at, std::initializer_list<std::uint8_t> bytes) {
    std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(0, {'C', 'A', 'I', 'S', 1, 2, 0, 1, 1, 0, 2, 1, 3, 0, 0, 0});
  put(16, {64, 0, 0, 0, 0, 0, 4, 0, 64, 0, 0, 0, 0, 0, 0, 0, 1});
  put(40, {8});
  put(48, {6});
  put(104, {1, 2, 3, 4, 5, 6, 7, 8});
  const CommDescriptor descriptor = example();
  const auto bytes = as_bytes(descriptor);
  for (std::size_t i = 0; i < descriptor_bytes; ++i) {
    EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), expected[i]) << "byte " << i;
  }
}

TEST(Descriptor, ParsesToTheSameBytes) {
  const CommDescriptor sent = example();
  const auto got = parse_descriptor(as_bytes(sent));
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(std::memcmp(&sent, &*got, descriptor_bytes), 0);
  EXPECT_EQ(hash(*got), hash(sent));
}

TEST(Descriptor, HashDependsOnEveryByte) {
  CommDescriptor descriptor = example();
  const DescriptorHash before = hash(descriptor);
  for (std::size_t i = 0; i < descriptor_bytes; ++i) {
    auto* byte = reinterpret_cast<unsigned char*>(&descriptor) + i;
    *byte ^= 1u;
    EXPECT_NE(hash(descriptor), before) << "byte " << i;
    *byte ^= 1u;
  }
}

TEST(Descriptor, RefusesOtherLengths) {
  const std::vector<std::byte> bytes(2 * descriptor_bytes);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const auto parsed = parse_descriptor(std::span(bytes).first(size));
    ASSERT_FALSE(parsed.ok());
    if (size == descriptor_bytes) continue;
    EXPECT_EQ(parsed.error().code, ErrorCode::malformed);
    EXPECT_EQ(parsed.error().message,
              "CommDescriptor: size is " + std::to_string(size) + ", must be 128 bytes");
  }
}

struct Refusal {
  const char* name;
  std::function<void(CommDescriptor&)> spoil;
  const char* says;
};

class RefusedField : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedField, IsNamedWithItsValueAndRange) {
  CommDescriptor descriptor = example();
  ASSERT_TRUE(validate(descriptor).ok());
  GetParam().spoil(descriptor);
  const auto result = validate(descriptor);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::malformed);
  EXPECT_THAT(result.error().message, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, RefusedField,
    ::testing::ValuesIn(std::vector<Refusal>{
        {"magic", [](auto& d) { d.magic = 1; }, "magic is 1, must be"},
        {"version", [](auto& d) { d.version = 9; }, "version is 9, must be 1"},
        {"kind", [](auto& d) { d.kind = 77; }, "kind is 77, must be an OpKind"},
        {"reduce_op", [](auto& d) { d.reduce_op = 6; }, "reduce_op is 6"},
        {"op_where_none", [](auto& d) { d.reduce_op = 1; },
         "reduce_op is 1, must be none in all_gather"},
        {"dtype", [](auto& d) { d.dtype = 0; }, "dtype is 0, must be a DType"},
        {"accumulator", [](auto& d) { d.accumulator = 2; },
         "accumulator is 2, must be 1 (float32)"},
        {"guard_bits", [](auto& d) { d.guard_bits = 2; }, "guard_bits is 2, must be 0"},
        {"dims", [](auto& d) { d.dims = 6; }, "dims is 6, must be in [0, 5]"},
        {"shard_dim", [](auto& d) { d.shard_dim = 2; },
         "shard_dim is 2, must be -1 or in [0, dims)"},
        {"negative_dim", [](auto& d) { d.shard_dim = -2; }, "shard_dim is -2"},
        {"no_ranks", [](auto& d) { d.ranks = 0; }, "ranks is 0, must be in [1, 64]"},
        {"many_ranks", [](auto& d) { d.ranks = 65; }, "ranks is 65, must be in [1, 64]"},
        {"root_of_none", [](auto& d) { d.root = 1; }, "root is 1, must be in [0, 1)"},
        {"fragment_zero", [](auto& d) { d.fragment_bytes = 0; }, "fragment_bytes is 0"},
        {"fragment_odd", [](auto& d) { d.fragment_bytes = 24; }, "fragment_bytes is 24"},
        {"fragment_large", [](auto& d) { d.fragment_bytes = 65'008; }, "fragment_bytes is 65008"},
        {"chunk_small", [](auto& d) { d.chunk_bytes = 65'535; }, "chunk_bytes is 65535"},
        {"chunk_large", [](auto& d) { d.chunk_bytes = 1'048'577; }, "chunk_bytes is 1048577"},
        {"unit_odd", [](auto& d) { d.unit_bytes = 63; },
         "unit_bytes is 63, must be a multiple of the dtype's size"},
        {"unit_large", [](auto& d) { d.unit_bytes = unit_bytes_max + 4; }, "at most 34359738368"},
        {"many_fragments", [](auto& d) { d.unit_bytes = unit_bytes_max, d.fragment_bytes = 16; },
         "at most 1073741824 fragments"},
        {"no_lanes", [](auto& d) { d.lanes = 0; }, "lanes is 0, must be in [1, 64]"},
        {"many_lanes", [](auto& d) { d.lanes = 65; }, "lanes is 65, must be in [1, 64]"},
        {"layout", [](auto& d) { d.layout = 1; }, "layout is 1, must be 0"},
        {"reserved0", [](auto& d) { d.reserved0[5] = 1; }, "a reserved byte is not zero"},
        {"reserved1", [](auto& d) { d.reserved1 = 1; }, "a reserved byte is not zero"},
        {"reserved2", [](auto& d) { d.reserved2 = 1; }, "a reserved byte is not zero"},
        {"shape_past_dims", [](auto& d) { d.shape[2] = 1; }, "shape is 1, must be 0 past dims"},
        {"stride", [](auto& d) { d.stride[0] = 1; }, "stride"},
        {"shape_size", [](auto& d) { d.shape[0] = 9; }, "shape is 54, must be 48 elements"},
        {"shape_large", [](auto& d) { d.shape[0] = ~0ull; }, "shape is 18446744073709551615"},
        {"shape_overflow", [](auto& d) { d.shape[0] = d.shape[1] = 1ull << 41; }, "shape"},
        {"shard_uneven", [](auto& d) { d.shape[0] = 6, d.shape[1] = 8; },
         "shape[shard_dim] is 8, must be a multiple of ranks"},
    }),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(Descriptor, RefusesReductionsOfOpaqueBytesAndWithoutAnOp) {
  CommDescriptor descriptor = all_reduce_example();
  descriptor.dtype = descriptor.accumulator = static_cast<std::uint8_t>(DType::bytes2);
  EXPECT_THAT(validate(descriptor).error().message, HasSubstr("not opaque bytes"));
  descriptor = all_reduce_example();
  descriptor.reduce_op = 0;
  EXPECT_THAT(validate(descriptor).error().message, HasSubstr("other than none in all_reduce"));
}

TEST(Descriptor, GuardBitsAreNoneOrJustEnoughForTheRanks) {
  CommDescriptor descriptor = all_reduce_example();
  for (std::uint8_t bits = 0; bits < 10; ++bits) {
    descriptor.guard_bits = bits;  // 5 ranks: ⌈log2 5⌉ = 3
    EXPECT_EQ(validate(descriptor).ok(), bits == 0 || bits == 3) << unsigned{bits};
  }
}

TEST(Descriptor, BarrierMovesNothing) {
  CommDescriptor descriptor = make_descriptor({.kind = OpKind::barrier, .ranks = 4}).value();
  descriptor.unit_bytes = 1;
  EXPECT_THAT(validate(descriptor).error().message, HasSubstr("0 in a barrier"));
}

TEST(Descriptor, TakesAnyBytes) {
  Rng rng(1);
  int accepted = 0;
  for (int round = 0; round < 200'000; ++round) {
    CommDescriptor descriptor = rng.chance(0.5) ? example() : all_reduce_example();
    auto* bytes = reinterpret_cast<unsigned char*>(&descriptor);
    for (std::uint64_t flips = rng.below(4); flips > 0; --flips) {
      bytes[rng.below(descriptor_bytes)] = static_cast<unsigned char>(rng.next());
    }
    const auto parsed = parse_descriptor(as_bytes(descriptor));
    if (!parsed) {
      EXPECT_EQ(parsed.error().code, ErrorCode::malformed);
      continue;
    }
    ++accepted;
    EXPECT_FALSE(to_string(*parsed).empty());
  }
  EXPECT_GT(accepted, 1000) << "the mutations must reach past the first check";
}

}  // namespace
}  // namespace cais::wire
