// Groups over several "hosts": each rank is a thread, and shared memory stands in for both legs, so
// that what is tested is the composition alone.
#include "runtime/mixed/mixed_transport.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <latch>
#include <thread>

#include "base/rng.hpp"
#include "nir/interpret.hpp"
#include "runtime/group_communicator.hpp"
#include "runtime/shm/group.hpp"
#include "runtime/shm/shm_transport.hpp"
#include "tests/runtime/ranks.hpp"

namespace cais::runtime::mixed {
namespace {

using Layout = std::vector<std::string>;  // host of each rank

Leg make_leg(const std::string& name, std::size_t rank, std::vector<std::uint16_t> members,
             std::uint64_t group, Rendezvous& rendezvous) {
  const Settings settings;
  const GroupConfig config{name, static_cast<std::uint16_t>(rank),
                           static_cast<std::uint16_t>(members.size()), std::chrono::seconds(20),
                           members};
  auto joined = shm::connect_group(settings, config, rendezvous);
  EXPECT_TRUE(joined.ok()) << joined.error().message;
  Leg leg;
  const shm::Tuning tuning = shm::tuning_for(joined->ranks(), joined->cores);
  leg.transport = std::make_unique<shm::ShmTransport>(settings, std::move(*joined), tuning);
  leg.plans.emplace(GroupTraits{config.ranks, group, leg.transport->fragment_bytes(),
                                settings.chunk_bytes, leg.transport->lanes()});
  return leg;
}

void run_hosts(const Layout& layout, const std::function<void(Communicator&)>& body,
               Duration timeout = std::chrono::seconds(20)) {
  testing::MapRendezvous rendezvous;
  const Hosts hosts = group_by_host(layout);
  std::latch all_done(static_cast<std::ptrdiff_t>(layout.size()));
  std::vector<std::thread> ranks;
  for (std::uint16_t rank = 0; rank < layout.size(); ++rank) {
    ranks.emplace_back([&, rank] {
      const Seat seat = seat_of(hosts, rank);
      std::vector<std::uint16_t> leaders;
      for (const auto& members : hosts.members) leaders.push_back(members.front());
      Leg local = make_leg("host" + std::to_string(seat.host), seat.index, hosts.members[seat.host],
                           1, rendezvous);
      Leg across;
      if (seat.index == 0) across = make_leg("across", seat.host, leaders, 2, rendezvous);
      GroupConfig config{"mixed", rank, static_cast<std::uint16_t>(layout.size()), timeout};
      GroupCommunicator group(
          Settings{}, config,
          std::make_unique<MixedTransport>(hosts, seat, std::move(local), std::move(across)));
      body(group);
      all_done.arrive_and_wait();
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

/// Small whole numbers: every order of adding them gives the same bits.
nir::TensorBytes whole_numbers(DType dtype, std::size_t count, std::uint64_t seed) {
  nir::TensorBytes bytes(count * size_of(dtype));
  Rng rng(seed);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<std::int32_t>(rng.below(4));
    std::byte* const at = bytes.data() + i * size_of(dtype);
    const auto number = static_cast<float>(value);
    std::uint32_t bits;
    std::memcpy(&bits, &number, 4);
    if (dtype == DType::float32) {
      std::memcpy(at, &bits, 4);
    } else if (dtype == DType::bfloat16) {
      bits >>= 16;
      std::memcpy(at, &bits, 2);
    } else {
      std::memcpy(at, &value, size_of(dtype));
    }
  }
  return bytes;
}

struct Case {
  OpKind kind;
  ReduceOp op;
  DType dtype;
  std::size_t count;
  std::uint16_t root;
};

std::vector<Case> cases(std::uint16_t ranks) {
  std::vector<Case> all;
  const auto last = static_cast<std::uint16_t>(ranks - 1);
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}}) {
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::int32}) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::max}) {
        all.push_back({OpKind::all_reduce, op, dtype, count, 0});
        all.push_back({OpKind::reduce, op, dtype, count, last});
        all.push_back({OpKind::reduce_scatter, op, dtype, count, 0});
      }
      all.push_back({OpKind::all_gather, ReduceOp::none, dtype, count, 0});
      all.push_back({OpKind::broadcast, ReduceOp::none, dtype, count, last});
      all.push_back({OpKind::all_to_all, ReduceOp::none, dtype, count, 0});
      for (const std::uint16_t root : {std::uint16_t{0}, last}) {
        all.push_back({OpKind::gather, ReduceOp::none, dtype, count, root});
        all.push_back({OpKind::scatter, ReduceOp::none, dtype, count, root});
      }
    }
  }
  // Several pieces, the last one short.
  all.push_back({OpKind::all_reduce, ReduceOp::avg, DType::bfloat16, 300'001, 0});
  all.push_back({OpKind::broadcast, ReduceOp::none, DType::float32, 300'001, last});
  all.push_back({OpKind::barrier, ReduceOp::none, DType::uint8, 0, 0});
  return all;
}

void check_case(Communicator& group, const Case& wanted) {
  const std::uint16_t ranks = group.ranks();
  const bool sends_units = wanted.kind == OpKind::reduce_scatter ||
                           wanted.kind == OpKind::all_to_all || wanted.kind == OpKind::scatter;
  const bool gets_units = wanted.kind == OpKind::all_gather || wanted.kind == OpKind::all_to_all ||
                          wanted.kind == OpKind::gather;
  const std::size_t units_in = sends_units ? ranks : 1;
  const std::size_t units_out = gets_units ? ranks : 1;
  std::vector<nir::TensorBytes> inputs;
  for (std::uint16_t rank = 0; rank < ranks; ++rank) {
    inputs.push_back(
        whole_numbers(wanted.dtype, wanted.count * units_in, wanted.count * 64 + rank));
  }
  nir::TensorBytes& own = inputs[group.rank()];
  nir::TensorBytes out(wanted.count * units_out * size_of(wanted.dtype));
  Collective collective;
  collective.kind = wanted.kind;
  collective.reduce_op = wanted.op;
  collective.dtype = wanted.dtype;
  collective.root = Rank(wanted.root);
  collective.count = wanted.count;
  if (wanted.kind == OpKind::broadcast) out = own;
  collective.send = own.data();
  collective.recv = out.data();
  auto operation = group.start(collective, Start::caller_waits);
  ASSERT_TRUE(operation.ok()) << operation.error().message;
  const Result<void> outcome = group.wait(**operation);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  auto expected = nir::interpret((*operation)->descriptor, inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  const nir::TensorBytes& mine = (*expected)[group.rank()];
  if (mine.empty()) return;
  EXPECT_TRUE(out == mine) << "rank " << group.rank() << ": "
                           << wire::to_string((*operation)->descriptor);
}

TEST(MixedTransport, ComputesWhatTheReferenceComputes) {
  for (const Layout& layout : {Layout{"a", "a", "b", "b"}, Layout{"a", "b", "a"},
                               Layout{"a", "b", "c"}, Layout{"a", "b", "b", "b", "a"}}) {
    run_hosts(layout, [](Communicator& group) {
      for (const Case& wanted : cases(group.ranks())) check_case(group, wanted);
    });
  }
}

// 1 + 2^-8 + 2^-8 in bfloat16: rounding the partial of host a drops 2^-8 and then 2^-8 again.
TEST(MixedTransport, RoundsHalvesOnce) {
  run_hosts({"a", "a", "b", "b"}, [](Communicator& group) {
    const std::uint16_t values[] = {0x3f80, 0x3b80, 0x3b80, 0x0000};
    std::uint16_t value = values[group.rank()];
    Collective collective;
    collective.kind = OpKind::all_reduce;
    collective.reduce_op = ReduceOp::sum;
    collective.dtype = DType::bfloat16;
    collective.send = collective.recv = &value;
    collective.count = 1;
    ASSERT_TRUE(group.run(collective).ok());
    EXPECT_EQ(value, 0x3f81);
  });
}

// P12: steps of different collectives look alike (an avg begins as a sum), yet must not meet.
TEST(MixedTransport, RefusesMismatchedCollectivesAtEveryRank) {
  run_hosts({"a", "a", "b", "b"}, [](Communicator& group) {
    std::vector<float> data(100, 1.0f);
    Collective collective;
    collective.kind = OpKind::all_reduce;
    collective.reduce_op = group.rank() >= 2 ? ReduceOp::avg : ReduceOp::sum;
    collective.dtype = DType::float32;
    collective.send = collective.recv = data.data();
    collective.count = data.size();
    const Result<void> outcome = group.run(collective);
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::mismatch) << outcome.error().message;
    // The collectives that the ranks called, not the steps that they are made of.
    const std::string& words = outcome.error().message;
    EXPECT_NE(words.find("called all_reduce sum float32 [100] over 4 ranks"), words.npos) << words;
    EXPECT_NE(words.find("called all_reduce avg float32 [100] over 4 ranks"), words.npos) << words;
    EXPECT_NE(words.find("rank 0 called"), words.npos) << words;
    EXPECT_NE(words.find("rank 2 called"), words.npos) << words;
  });
}

// The numbers are those of the group, on whichever host and leg a rank is missed.
TEST(MixedTransport, NamesMismatchedRanksOfOneHostByTheirNumbersInTheGroup) {
  run_hosts({"a", "b", "b", "a"}, [](Communicator& group) {
    std::vector<float> data(400, 1.0f);
    Collective collective;
    collective.kind = group.rank() == 3 ? OpKind::broadcast : OpKind::all_reduce;
    collective.reduce_op = group.rank() == 3 ? ReduceOp::none : ReduceOp::max;
    collective.dtype = DType::float32;
    collective.send = collective.recv = data.data();
    collective.count = data.size();
    const Result<void> outcome = group.run(collective);
    ASSERT_FALSE(outcome.ok());
    const std::string& words = outcome.error().message;
    EXPECT_EQ(outcome.error().code, ErrorCode::mismatch) << words;
    EXPECT_NE(words.find("rank 3 called broadcast float32 [400] over 4 ranks"), words.npos)
        << words;
    EXPECT_NE(words.find("rank 0 called all_reduce max"), words.npos) << words;
  });
}

TEST(MixedTransport, ATimeoutNamesWhoIsMissing) {
  for (const std::uint16_t late : {std::uint16_t{2}, std::uint16_t{1}}) {  // not a leader; a leader
    run_hosts(
        {"a", "b", "b", "a"},
        [late](Communicator& group) {
          std::vector<float> data(400, 1.0f);
          Collective collective;
          collective.kind = OpKind::all_reduce;
          collective.reduce_op = ReduceOp::sum;
          collective.dtype = DType::float32;
          collective.send = collective.recv = data.data();
          collective.count = data.size();
          if (group.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(800));
          const Result<void> outcome = group.run(collective);
          ASSERT_FALSE(outcome.ok());
          const std::string& words = outcome.error().message;
          EXPECT_EQ(outcome.error().code, ErrorCode::timed_out) << words;
          EXPECT_NE(words.find("all_reduce sum float32 [400] over 4 ranks"), words.npos) << words;
          EXPECT_NE(words.find("have not arrived"), words.npos) << words;
        },
        std::chrono::milliseconds(300));
  }
}

TEST(MixedTransport, AbortReachesTheOtherHosts) {
  run_hosts({"a", "a", "b", "b"}, [](Communicator& group) {
    if (group.rank() == 3) return group.abort("enough");
    Collective barrier;
    const Result<void> outcome = group.run(barrier);
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::aborted) << outcome.error().message;
  });
}

TEST(GroupByHost, OrdersHostsByTheirLowestRank) {
  const Hosts hosts = group_by_host(Layout{"x", "a", "x", "b", "a"});
  EXPECT_EQ(hosts.members, (std::vector<std::vector<std::uint16_t>>{{0, 2}, {1, 4}, {3}}));
  EXPECT_EQ(hosts.members_max(), 2u);
  EXPECT_EQ(seat_of(hosts, 4).host, 1);
  EXPECT_EQ(seat_of(hosts, 4).index, 1);
}

}  // namespace
}  // namespace cais::runtime::mixed
