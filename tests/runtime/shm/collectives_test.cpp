// Every collective over shared memory equals the reference interpreter bit for bit: any number of
// ranks, size, dtype, reduce op and root; memory of any kind; in place and not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "io/shm/arena.hpp"
#include "nir/interpret.hpp"
#include "tests/runtime/ranks.hpp"

namespace cais::runtime {
namespace {

using testing::RanksConfig;
using testing::run_ranks;

/// Which of its tensors a rank has in CAIS memory.
enum class Memory { any, cais, send_only, odd_ranks };

struct Case {
  OpKind kind;
  ReduceOp reduce_op;
  DType dtype;
  std::uint16_t ranks;
  std::size_t count;
  Memory memory;
  bool in_place;
  std::uint16_t root;
};

std::string name_of(const Case& c) {
  return std::string(to_string(c.kind)) + " " + std::string(to_string(c.reduce_op)) + " " +
         std::string(to_string(c.dtype)) + " x" + std::to_string(c.count) + " over " +
         std::to_string(c.ranks) + (c.in_place ? " in place" : "") + " memory " +
         std::to_string(static_cast<int>(c.memory)) + " root " + std::to_string(c.root);
}

/// Memory from the process's arena or from malloc.
class Tensor {
 public:
  Tensor(std::size_t bytes, bool cais)
      : arena_(cais ? io::process_arena() : nullptr),
        data_(static_cast<std::byte*>(arena_ != nullptr ? arena_->allocate(bytes + 1)
                                                        : std::malloc(bytes + 1))) {
    std::memset(data_, 0xa5, bytes + 1);
  }
  Tensor(const Tensor&) = delete;
  ~Tensor() { arena_ != nullptr ? arena_->deallocate(data_) : std::free(data_); }
  std::byte* data() const { return data_; }

 private:
  io::Arena* arena_;
  std::byte* data_;
};

nir::TensorBytes random_input(const Case& c, std::size_t bytes, std::uint64_t seed) {
  Rng rng(seed);
  nir::TensorBytes input(bytes);
  const std::size_t step = size_of(c.dtype);
  for (std::size_t i = 0; i + step <= bytes; i += step) {
    const std::uint64_t bits = rng.next();
    if (c.dtype == DType::float32) {
      const float value = static_cast<float>(static_cast<std::int64_t>(bits)) * 0x1p-60f;
      std::memcpy(&input[i], &value, sizeof(value));
    } else if (c.dtype == DType::float64) {
      const double value = static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-60;
      std::memcpy(&input[i], &value, sizeof(value));
    } else if (c.dtype == DType::bfloat16) {  // exponents near 1: finite sums
      const auto value = static_cast<std::uint16_t>((bits & 0x80ff) | 0x3f00);
      std::memcpy(&input[i], &value, sizeof(value));
    } else if (c.dtype == DType::float16) {
      const auto value = static_cast<std::uint16_t>((bits & 0x83ff) | 0x3800);
      std::memcpy(&input[i], &value, sizeof(value));
    } else {
      std::memcpy(&input[i], &bits, step);
    }
  }
  return input;
}

bool many_units_sent(OpKind kind) {
  return kind == OpKind::reduce_scatter || kind == OpKind::all_to_all || kind == OpKind::scatter;
}
bool many_units_received(OpKind kind) {
  return kind == OpKind::all_gather || kind == OpKind::all_to_all || kind == OpKind::gather;
}

void run_case(const Case& c, Communicator& communicator, std::vector<nir::TensorBytes>& inputs,
              std::vector<nir::TensorBytes>& outputs, wire::CommDescriptor& descriptor) {
  const std::size_t rank = communicator.rank();
  const std::size_t unit = c.count * size_of(c.dtype);
  const std::size_t send_bytes = unit * (many_units_sent(c.kind) ? c.ranks : 1u);
  const std::size_t recv_bytes = unit * (many_units_received(c.kind) ? c.ranks : 1u);
  const bool cais = c.memory == Memory::cais || (c.memory == Memory::odd_ranks && rank % 2 == 1);
  Tensor send(send_bytes, cais || c.memory == Memory::send_only);
  Tensor recv(std::max(recv_bytes, send_bytes), cais);
  inputs[rank] = random_input(c, send_bytes, 1000 + rank);

  Collective collective{.kind = c.kind,
                        .reduce_op = c.reduce_op,
                        .dtype = c.dtype,
                        .root = Rank(c.root),
                        .count = c.count};
  std::byte* in = send.data();
  std::byte* out = recv.data();
  if (c.kind == OpKind::broadcast) in = recv.data();
  if (c.in_place) {
    in = recv.data() + (many_units_received(c.kind) ? rank * unit : 0);
    out = recv.data() + (many_units_sent(c.kind) ? rank * unit : 0);
  }
  if (c.kind != OpKind::broadcast || rank == c.root) {
    std::memcpy(in, inputs[rank].data(), send_bytes);
  }
  collective.send = c.kind == OpKind::broadcast ? nullptr : in;
  collective.recv = out;
  auto operation = communicator.start(collective, Start::caller_waits);
  ASSERT_TRUE(operation.ok()) << operation.error().message;
  const auto outcome = communicator.wait(**operation);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  if (rank == 0) descriptor = (*operation)->descriptor;
  outputs[rank].assign(out, out + recv_bytes);
}

void check_case(const Case& c, std::optional<shm::Tuning> tuning = std::nullopt) {
  SCOPED_TRACE(name_of(c));
  std::vector<nir::TensorBytes> inputs(c.ranks);
  std::vector<nir::TensorBytes> outputs(c.ranks);
  wire::CommDescriptor descriptor{};
  RanksConfig config;
  config.tuning = tuning;
  config.settings.shm_staging_bytes = c.count > 100'000 ? 100'000 : 8192;  // many rounds
  run_ranks(c.ranks, config, [&](Communicator& communicator) {
    run_case(c, communicator, inputs, outputs, descriptor);
  });
  const auto expected = nir::interpret(descriptor, inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  for (std::size_t rank = 0; rank < c.ranks; ++rank) {
    if ((*expected)[rank].empty() || (c.kind == OpKind::broadcast && rank == c.root)) continue;
    EXPECT_TRUE(outputs[rank] == (*expected)[rank]) << "rank " << rank;
  }
}

bool can_be_in_place(OpKind kind) {
  return kind != OpKind::all_to_all && kind != OpKind::broadcast && kind != OpKind::gather &&
         kind != OpKind::scatter;
}

constexpr OpKind kinds[] = {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter,
                            OpKind::broadcast,  OpKind::reduce,     OpKind::all_to_all,
                            OpKind::gather,     OpKind::scatter};

class ShmCollectives : public ::testing::TestWithParam<OpKind> {};

TEST_P(ShmCollectives, EqualsReferenceAtAnySizeAndMemory) {
  const OpKind kind = GetParam();
  const ReduceOp op = wire::reduces(kind) ? ReduceOp::sum : ReduceOp::none;
  for (const std::uint16_t ranks : std::initializer_list<std::uint16_t>{1, 2, 3, 4, 8}) {
    for (const std::size_t count : {1u, 3u, 16u, 1000u, 5000u, 40'001u}) {
      for (const Memory memory :
           {Memory::any, Memory::cais, Memory::send_only, Memory::odd_ranks}) {
        const auto root = static_cast<std::uint16_t>(count % ranks);
        check_case({kind, op, DType::float32, ranks, count, memory, false, root});
        if (can_be_in_place(kind)) {
          check_case({kind, op, DType::float32, ranks, count, memory, true, root});
        }
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(ShmCollectives, EqualsReferenceForEveryType) {
  const OpKind kind = GetParam();
  for (const DType dtype : {DType::float64, DType::float16, DType::bfloat16, DType::int8,
                            DType::uint8, DType::int32, DType::int64}) {
    for (const ReduceOp op :
         {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::product}) {
      if (!wire::reduces(kind) && op != ReduceOp::sum) continue;
      for (const std::size_t count : {5u, 9000u}) {
        check_case({kind, wire::reduces(kind) ? op : ReduceOp::none, dtype, 3, count, Memory::any,
                    false, 1});
        check_case({kind, wire::reduces(kind) ? op : ReduceOp::none, dtype, 4, count, Memory::cais,
                    false, 2});
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ShmCollectives, ::testing::ValuesIn(kinds),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

/// Both ways to reduce for all, whatever this machine would choose.
TEST(ShmGroup, LargeAllReduces) {
  for (const std::uint32_t cores : {1u, 64u}) {  // ranks share cores: claimed; else: split
    for (const Memory memory : {Memory::any, Memory::cais, Memory::odd_ranks}) {
      for (const bool in_place : {false, true}) {
        const auto check = [&](ReduceOp op, DType dtype, std::uint16_t ranks, std::size_t count) {
          check_case({OpKind::all_reduce, op, dtype, ranks, count, memory, in_place, 0},
                     shm::tuning_for(ranks, cores));
        };
        check(ReduceOp::sum, DType::float32, 2, 300'001);
        check(ReduceOp::sum, DType::float32, 3, 10'007);
        check(ReduceOp::avg, DType::float32, 5, 200'003);
        check(ReduceOp::avg, DType::int32, 8, 100'001);
        check(ReduceOp::sum, DType::bfloat16, 16, 150'001);
        check(ReduceOp::max, DType::int8, 16, 20'001);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(ShmGroup, SixtyFourRanksOnFewCores) {
  check_case({OpKind::all_reduce, ReduceOp::sum, DType::float32, 64, 3000, Memory::any, false, 0});
  check_case({OpKind::all_reduce, ReduceOp::sum, DType::float32, 64, 7, Memory::any, false, 0});
  check_case({OpKind::all_to_all, ReduceOp::none, DType::float32, 64, 300, Memory::any, false, 0});
}

/// Ops of every kind and size behind each other in one group: rounds, claims and arrivals of one
/// must never be taken for those of another.
TEST(ShmGroup, ManyOpsInARow) {
  for (const std::uint16_t ranks : std::initializer_list<std::uint16_t>{2, 3, 5}) {
    for (const std::uint32_t cores : {1u, 64u}) {
      RanksConfig config;
      config.tuning = shm::tuning_for(ranks, cores);
      config.settings.shm_staging_bytes = 4096;
      run_ranks(ranks, config, [&](Communicator& communicator) {
        Rng rng(7);  // the same ops at all ranks
        std::vector<float> in(20'000);
        std::vector<float> out(20'000 * ranks);
        for (std::size_t i = 0; i < in.size(); ++i)
          in[i] = static_cast<float>(i + communicator.rank());
        for (int op = 0; op < 600; ++op) {
          const std::size_t count = 1 + rng.below(rng.chance(0.5) ? 100 : 20'000);
          const bool gather = rng.chance(0.3);
          Collective collective{.kind = gather ? OpKind::all_gather : OpKind::all_reduce,
                                .reduce_op = gather ? ReduceOp::none : ReduceOp::sum,
                                .dtype = DType::float32,
                                .send = in.data(),
                                .recv = out.data(),
                                .count = count};
          const auto outcome = communicator.run(collective);
          ASSERT_TRUE(outcome.ok()) << outcome.error().message;
          const std::size_t last = count - 1;
          const auto n = static_cast<float>(ranks);
          const float sum = n * static_cast<float>(last) + n * (n - 1) / 2;
          const float want = gather ? static_cast<float>(last + ranks - 1) : sum;
          ASSERT_EQ(out[gather ? (ranks - 1) * count + last : last], want) << "op " << op;
        }
      });
    }
  }
}

}  // namespace
}  // namespace cais::runtime
