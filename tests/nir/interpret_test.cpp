// The interpreter against what the collectives mean, said once more without any IR.
#include "nir/interpret.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "numeric/reduce.hpp"
#include "tests/nir/random_descriptor.hpp"

namespace cais::nir {
namespace {

using ::testing::HasSubstr;

/// Small integers in every dtype: no NaN, and sums of them are still finite.
TensorBytes random_tensor(Rng& rng, DType dtype, std::uint64_t elements) {
  TensorBytes bytes(elements * size_of(dtype));
  const auto fill = [&]<typename T>(T) {
    for (std::uint64_t i = 0; i < elements; ++i) {
      const T value = static_cast<T>(rng.below(100));
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  };
  switch (dtype) {
    case DType::float32:
      fill(float{});
      break;
    case DType::float64:
      fill(double{});
      break;
    case DType::float16:
    case DType::bfloat16:
      for (std::uint64_t i = 0; i < elements; ++i) {  // normal numbers near one
        const auto bits = static_cast<std::uint16_t>(0x3c00 + rng.below(0x400));
        std::memcpy(bytes.data() + i * 2, &bits, 2);
      }
      break;
    default:
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.next());
  }
  return bytes;
}

TensorBytes unit_of(const TensorBytes& tensor, std::size_t unit, std::size_t bytes) {
  const auto begin = tensor.begin() + static_cast<std::ptrdiff_t>(unit * bytes);
  return {begin, begin + static_cast<std::ptrdiff_t>(bytes)};
}

TensorBytes reduced(const wire::DescriptorSpec& spec, const std::vector<TensorBytes>& inputs,
                    std::size_t unit) {
  const std::size_t bytes = spec.unit_elements * size_of(spec.dtype);
  std::vector<const std::byte*> pointers;
  for (const TensorBytes& input : inputs) pointers.push_back(input.data() + unit * bytes);
  TensorBytes result(bytes);
  std::byte* out = result.data();
  EXPECT_TRUE(numeric::reduce_reference(
      {.op = spec.reduce_op, .input = spec.dtype, .output = spec.dtype, .divisor = spec.ranks},
      {&out, 1}, pointers, spec.unit_elements));
  return result;
}

TensorBytes gathered(const std::vector<TensorBytes>& inputs, std::size_t unit, std::size_t bytes) {
  TensorBytes all;
  for (const TensorBytes& input : inputs) {
    const TensorBytes part = unit_of(input, unit, bytes);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TensorBytes meant(const wire::DescriptorSpec& spec, const std::vector<TensorBytes>& inputs,
                  std::uint16_t rank) {
  const std::size_t bytes = spec.unit_elements * size_of(spec.dtype);
  const bool is_root = rank == spec.root.value;
  switch (spec.kind) {
    case OpKind::all_reduce:
      return reduced(spec, inputs, 0);
    case OpKind::reduce:
      return is_root ? reduced(spec, inputs, 0) : TensorBytes{};
    case OpKind::reduce_scatter:
      return reduced(spec, inputs, rank);
    case OpKind::all_gather:
      return gathered(inputs, 0, bytes);
    case OpKind::gather:
      return is_root ? gathered(inputs, 0, bytes) : TensorBytes{};
    case OpKind::all_to_all:
      return gathered(inputs, rank, bytes);
    case OpKind::broadcast:
      return inputs[spec.root.value];
    case OpKind::scatter:
      return unit_of(inputs[spec.root.value], rank, bytes);
    case OpKind::barrier:
      return {};
  }
  return {};
}

class EveryKind : public ::testing::TestWithParam<OpKind> {};
INSTANTIATE_TEST_SUITE_P(Interpret, EveryKind, ::testing::ValuesIn(all_kinds),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(EveryKind, ComputesWhatTheCollectiveMeans) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    wire::DescriptorSpec spec = random_spec(rng, GetParam());
    spec.unit_elements = spec.kind == OpKind::barrier ? 0 : rng.below(100);
    const auto descriptor = wire::make_descriptor(spec).value();
    const std::uint64_t units = wire::units_of(spec.kind, spec.ranks);
    std::vector<TensorBytes> inputs;
    for (std::uint16_t r = 0; r < spec.ranks; ++r) {
      inputs.push_back(random_tensor(rng, spec.dtype, units * spec.unit_elements));
    }
    const auto outputs = interpret(descriptor, inputs);
    ASSERT_TRUE(outputs.ok()) << "seed " << seed << ": " << outputs.error().message;
    for (std::uint16_t r = 0; r < spec.ranks; ++r) {
      ASSERT_EQ((*outputs)[r], meant(spec, inputs, r))
          << "seed " << seed << ", rank " << r << ": " << to_string(descriptor);
    }
  }
}

TEST(Interpret, NeedsNoInputFromRanksThatAreNotLoaded) {
  const auto descriptor = wire::make_descriptor({.kind = OpKind::broadcast,
                                                 .dtype = DType::uint8,
                                                 .ranks = 3,
                                                 .root = Rank(1),
                                                 .unit_elements = 2})
                              .value();
  const TensorBytes sent{std::byte{7}, std::byte{9}};
  const auto outputs = interpret(descriptor, std::vector<TensorBytes>{{}, sent, {}});
  ASSERT_TRUE(outputs.ok());
  for (const TensorBytes& output : *outputs) EXPECT_EQ(output, sent);
}

TEST(Interpret, SaysWhichInputIsWrong) {
  const auto descriptor =
      wire::make_descriptor(
          {.kind = OpKind::all_gather, .dtype = DType::int32, .ranks = 2, .unit_elements = 3})
          .value();
  EXPECT_EQ(interpret(descriptor, std::vector<TensorBytes>(1)).error().message,
            "1 inputs for 2 ranks");
  EXPECT_EQ(interpret(descriptor, std::vector<TensorBytes>{TensorBytes(12), TensorBytes(8)})
                .error()
                .message,
            "the input of rank 1 has 8 bytes, must have 12");
}

}  // namespace
}  // namespace cais::nir
