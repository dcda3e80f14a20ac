// Every kernel on every instruction set of this machine, bit for bit against the scalar reference
// (any NaN equals any NaN).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "base/types.hpp"
#include "numeric/copy.hpp"
#include "numeric/half.hpp"
#include "numeric/reduce.hpp"
#include "tests/numeric/reductions.hpp"

namespace cais::numeric {
namespace {

/// One element's bits: sometimes a special value, sometimes anything, mostly a moderate number
/// whose sums have to be rounded.
std::uint64_t random_bits(DType dtype, Rng& rng) {
  static constexpr double moderate[] = {1.0, -1.0, 3.0, 0x1p-3, -0x1.8p-7, 100.0};
  static constexpr std::uint64_t specials32[] = {
      0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001,
      0xff800001, 0x7fffffff, 0xffffffff, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff,
      0x00800000, 0x7f7fffff, 0xff7fffff, 0x477fe000, 0x477ff000, 0x33000000, 0x38800000};
  static constexpr std::uint64_t specials64[] = {0,
                                                 1ull << 63,
                                                 0x7ffull << 52,
                                                 0xfffull << 52,
                                                 0x7ff8ull << 48,
                                                 0xfff8ull << 48,
                                                 (0x7ffull << 52) + 1,
                                                 (0xfffull << 52) + 1,
                                                 ~0ull,
                                                 ~0ull >> 1,
                                                 1,
                                                 (1ull << 52) - 1,
                                                 1ull << 52,
                                                 (0x7ffull << 52) - 1,
                                                 (0xfffull << 52) - 1};
  static constexpr std::uint64_t specials16[] = {
      0,      0x8000, 0x7c00, 0xfc00, 0x7c01, 0xfc01, 0x7e00, 0xfe00, 0x7fff,
      0xffff, 1,      0x8001, 0x3ff,  0x400,  0x7bff, 0xfbff, 0x7f80, 0xff80,
      0x7f81, 0xff81, 0x7fc0, 0x7f,   0x80,   0x7f7f, 0xff7f};
  static constexpr std::uint64_t specials_integer[] = {
      0, 1, ~0ull, 2, 0x7f, 0x80, 0x7fffffff, 0x80000000, ~0ull >> 1, 1ull << 63};
  const auto pick = [&](const auto& list) { return list[rng.below(std::size(list))]; };
  const bool special = rng.chance(0.05);
  if (rng.chance(0.1)) return rng.next();
  const double value = pick(moderate) * (1.0 + static_cast<double>(rng.next() >> 12) * 0x1p-52);
  switch (dtype) {
    case DType::float32:
      return special ? pick(specials32) : std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case DType::float64:
      return special ? pick(specials64) : std::bit_cast<std::uint64_t>(value);
    case DType::float16:
      return special ? pick(specials16) : Float16::encode(static_cast<float>(value));
    case DType::bfloat16:
      return special ? pick(specials16) : BFloat16::encode(static_cast<float>(value));
    default:
      return special ? pick(specials_integer) : rng.next();
  }
}

std::vector<std::byte> random_elements(DType dtype, std::size_t count, Rng& rng) {
  std::vector<std::byte> elements(count * size_of(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = random_bits(dtype, rng);
    std::memcpy(elements.data() + i * size_of(dtype), &bits, size_of(dtype));
  }
  return elements;
}

std::uint64_t bits_at(DType dtype, const std::byte* elements, std::size_t i) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, elements + i * size_of(dtype), size_of(dtype));
  return bits;
}

bool is_nan(DType dtype, std::uint64_t bits) {
  switch (dtype) {
    case DType::float32:
      return (bits & 0x7fffffff) > 0x7f800000;
    case DType::float64:
      return (bits & ~0ull >> 1) > 0x7ffull << 52;
    case DType::float16:
      return (bits & 0x7fff) > 0x7c00;
    case DType::bfloat16:
      return (bits & 0x7fff) > 0x7f80;
    default:
      return false;
  }
}

/// The first element that differs, in words; empty when none does.
std::string difference(DType dtype, const std::byte* expected, const std::byte* actual,
                       std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t want = bits_at(dtype, expected, i);
    const std::uint64_t have = bits_at(dtype, actual, i);
    if (want == have || (is_nan(dtype, want) && is_nan(dtype, have))) continue;
    return "element " + std::to_string(i) + " of " + std::to_string(count) + ": expected bits " +
           std::to_string(want) + ", computed " + std::to_string(have);
  }
  return "";
}

/// Contributions of some ranks, and what the reference makes of them.
struct Case {
  Case(const Reduction& reduction_in, std::size_t ranks, std::size_t count_in, Rng& rng)
      : reduction(reduction_in), count(count_in) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      contributions.push_back(random_elements(reduction.input, count, rng));
    }
    expected.resize(count * size_of(reduction.output));
    std::byte* output = expected.data();
    EXPECT_TRUE(reduce_reference(reduction, {&output, 1}, inputs(), count));
  }
  std::vector<const std::byte*> inputs() const {
    std::vector<const std::byte*> pointers;
    for (const auto& contribution : contributions) pointers.push_back(contribution.data());
    return pointers;
  }
  Reduction reduction;
  std::size_t count;
  std::vector<std::vector<std::byte>> contributions;
  std::vector<std::byte> expected;
};

/// Memory that starts `offset` bytes behind a boundary of 64, between guard bytes.
class Guarded {
 public:
  Guarded(std::size_t bytes, std::size_t offset)
      : memory_(bytes + offset + 3 * guard_bytes, guard), bytes_(bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data()) + guard_bytes;
    begin_ = guard_bytes + (64 - address % 64) % 64 + offset;
  }
  std::byte* data() { return memory_.data() + begin_; }
  bool intact() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if ((i < begin_ || i >= begin_ + bytes_) && memory_[i] != guard) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t guard_bytes = 64;
  static constexpr std::byte guard{0xa5};
  std::vector<std::byte> memory_;
  std::size_t bytes_;
  std::size_t begin_;
};

/// Reduces out of place, inputs aligned differently, to `copies` outputs whose addresses are
/// `skew` elements apart modulo 64 bytes; with and without streaming.
void expect_out_of_place(const Case& c, std::size_t copies, std::size_t skew) {
  std::vector<Guarded> input_memory, output_memory;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  const std::size_t size_in = size_of(c.reduction.input), size_out = size_of(c.reduction.output);
  for (std::size_t rank = 0; rank < c.contributions.size(); ++rank) {
    auto& memory = input_memory.emplace_back(c.count * size_in, rank % 5 * size_in);
    std::copy(c.contributions[rank].begin(), c.contributions[rank].end(), memory.data());
  }
  for (auto& memory : input_memory) inputs.push_back(memory.data());
  for (std::size_t k = 0; k < copies; ++k) {
    output_memory.emplace_back(c.count * size_out, (k * skew + 3) % 7 * size_out);
  }
  for (auto& memory : output_memory) outputs.push_back(memory.data());
  const auto reducer = Reducer::find(c.reduction);
  ASSERT_TRUE(reducer);
  for (const bool streaming : {false, true}) {
    for (std::byte* output : outputs) std::memset(output, 0x5a, c.count * size_out);
    if (streaming) {
      reducer->stream(outputs, inputs, c.count);
    } else {
      (*reducer)(outputs, inputs, c.count);
    }
    for (auto& memory : output_memory) {
      EXPECT_EQ(difference(c.reduction.output, c.expected.data(), memory.data(), c.count), "");
      EXPECT_TRUE(memory.intact());
    }
  }
}

/// Every rank's contribution is replaced by the result, as in an in-place all-reduce.
void expect_in_place(const Case& c) {
  auto tensors = c.contributions;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  for (auto& tensor : tensors) {
    inputs.push_back(tensor.data());
    outputs.push_back(tensor.data());
  }
  (*Reducer::find(c.reduction))(outputs, inputs, c.count);
  for (const auto& tensor : tensors) {
    EXPECT_EQ(difference(c.reduction.output, c.expected.data(), tensor.data(), c.count), "");
  }
}

class Kernels : public testing::TestWithParam<std::size_t> {};

TEST_P(Kernels, EqualTheReference) {
  const std::size_t ranks = GetParam();
  constexpr std::size_t counts[] = {0,  1,  2,  3,  5,  8,   15,  16,  17,
                                    31, 33, 63, 64, 65, 127, 257, 1031};
  Rng rng(ranks);
  const InstructionSets instruction_sets;
  for (const Reduction& reduction : all_reductions(static_cast<std::uint32_t>(ranks))) {
    SCOPED_TRACE(name_of(reduction));
    for (const std::size_t count : counts) {
      if (ranks > 8 && count > 257) continue;
      const Case c(reduction, ranks, count, rng);
      instruction_sets.for_each([&] {
        expect_out_of_place(c, 1 + count % 3, count / 2 % 2);
        if (reduction.input == reduction.output) expect_in_place(c);
      });
      if (testing::Test::HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Kernels, testing::Values(1, 2, 3, 4, 5, 8, 16, 64));

TEST(Kernels, AverageForAnyDivisor) {
  Rng rng(7);
  const InstructionSets instruction_sets;
  for (const std::uint32_t divisor : {1u, 2u, 3u, 7u, 100u, 127u, 128u, 255u, 300u, 1u << 24}) {
    for (const Reduction& reduction : all_reductions(divisor)) {
      if (reduction.op != ReduceOp::avg) continue;
      SCOPED_TRACE(name_of(reduction) + " / " + std::to_string(divisor));
      const Case c(reduction, 2, 300, rng);
      instruction_sets.for_each([&] { expect_out_of_place(c, 1, 0); });
    }
  }
}

/// All halves, and all floats at and beside the midpoints between two halves.
template <typename Format>
void expect_conversions(DType half) {
  std::vector<std::uint16_t> halves;
  std::vector<float> floats;
  for (std::uint32_t number = 0; number <= 0xffff; ++number) {
    const auto bits = static_cast<std::uint16_t>(number);
    halves.push_back(bits);
    const float value = Format::decode(bits);
    if (std::isnan(value) || (bits & 0x7fff) == Format::infinity) continue;
    const float next = Format::decode(static_cast<std::uint16_t>(bits + 1));
    const float middle = std::isinf(next) ? value * 1.001f : value / 2 + next / 2;
    for (const float near : {value, middle, std::nextafter(middle, 0.0f),
                             std::nextafter(middle, std::copysign(INFINITY, value))}) {
      floats.push_back(near);
    }
  }
  const auto expect = [](const Reduction& reduction, const auto& elements) {
    const std::byte* input = reinterpret_cast<const std::byte*>(elements.data());
    const std::size_t bytes = elements.size() * size_of(reduction.output);
    std::vector<std::byte> expected(bytes), actual(bytes);
    std::byte* output = expected.data();
    reduce_reference(reduction, {&output, 1}, {&input, 1}, elements.size());
    output = actual.data();
    (*Reducer::find(reduction))({&output, 1}, {&input, 1}, elements.size());
    EXPECT_EQ(difference(reduction.output, expected.data(), actual.data(), elements.size()), "");
  };
  InstructionSets().for_each([&] {
    expect({ReduceOp::sum, half, DType::float32, 1}, halves);
    expect({ReduceOp::sum, DType::float32, half, 1}, floats);
    expect({ReduceOp::sum, half, half, 1}, halves);
  });
}

TEST(Kernels, ConvertEveryFloat16) { expect_conversions<Float16>(DType::float16); }
TEST(Kernels, ConvertEveryBFloat16) { expect_conversions<BFloat16>(DType::bfloat16); }

TEST(CopyStream, CopiesAndTouchesNothingElse) {
  Rng rng(3);
  InstructionSets().for_each([&] {
    for (const std::size_t bytes : {0, 1, 15, 16, 63, 64, 65, 127, 256, 300, 1024, 5000}) {
      for (const std::size_t offset : {0, 1, 8, 63}) {
        const std::vector<std::byte> source = random_elements(DType::uint8, bytes + offset, rng);
        Guarded target(bytes, 63 - offset);
        copy_stream(target.data(), source.data() + offset, bytes);
        EXPECT_TRUE(std::equal(source.begin() + offset, source.end(), target.data()));
        EXPECT_TRUE(target.intact());
      }
    }
  });
}

TEST(Kernels, AreFoundForTypesThatFit) {
  for (const Reduction& reduction : all_reductions(1)) {
    EXPECT_TRUE(Reducer::find(reduction)) << name_of(reduction);
  }
  EXPECT_FALSE(Reducer::find({ReduceOp::sum, DType::int8, DType::float32, 1}));
  EXPECT_FALSE(Reducer::find({ReduceOp::max, DType::bytes4, DType::bytes4, 1}));
  EXPECT_FALSE(Reducer::find({ReduceOp::sum, DType::float16, DType::bfloat16, 1}));
  EXPECT_FALSE(Reducer::find({ReduceOp::none, DType::float32, DType::float32, 1}));
  EXPECT_FALSE(Reducer::find({ReduceOp::avg, DType::float32, DType::float32, 0}));
}

}  // namespace
}  // namespace cais::numeric
