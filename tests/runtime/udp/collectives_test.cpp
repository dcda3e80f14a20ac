// Every kind of collective over real sockets equals its reference, bit for bit.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/runtime/udp/group.hpp"

namespace cais::runtime {
namespace {

// Small integers in float32: any order of adding gives the same bits, and the reference is exact.
float element(std::size_t rank, std::size_t index) {
  return static_cast<float>((rank * 7919 + index * 31) % 1009);
}

std::vector<float> tensor(std::size_t rank, std::size_t count, std::size_t first = 0) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = element(rank, first + i);
  return values;
}

Collective collective(OpKind kind, std::size_t count, const void* send, void* recv) {
  Collective result;
  result.kind = kind;
  result.dtype = DType::float32;
  result.count = count;
  result.send = send;
  result.recv = recv;
  if (wire::reduces(kind)) result.reduce_op = ReduceOp::sum;
  return result;
}

float sum(std::size_t ranks, std::size_t index) {
  float total = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) total += element(rank, index);
  return total;
}

void check_all_reduce(TestRank& member, std::size_t count) {
  std::vector<float> data = tensor(member.rank(), count);
  const Result<void> outcome =
      member.run(collective(OpKind::all_reduce, count, data.data(), data.data()));
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(data[i], sum(member.ranks(), i)) << i;
}

void check_reduce_scatter(TestRank& member, std::size_t count) {
  const std::vector<float> data = tensor(member.rank(), count * member.ranks());
  std::vector<float> shard(count);
  ASSERT_TRUE(
      member.run(collective(OpKind::reduce_scatter, count, data.data(), shard.data())).ok());
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(shard[i], sum(member.ranks(), member.rank() * count + i)) << i;
  }
}

void check_all_gather(TestRank& member, std::size_t count) {
  const std::vector<float> shard = tensor(member.rank(), count);
  std::vector<float> all(count * member.ranks());
  ASSERT_TRUE(member.run(collective(OpKind::all_gather, count, shard.data(), all.data())).ok());
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], element(i / count, i % count));
}

void check_all_to_all(TestRank& member, std::size_t count) {
  const std::vector<float> data = tensor(member.rank(), count * member.ranks());
  std::vector<float> all(data.size());
  ASSERT_TRUE(member.run(collective(OpKind::all_to_all, count, data.data(), all.data())).ok());
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i], element(i / count, member.rank() * count + i % count)) << i;
  }
}

void check_rooted(TestRank& member, std::size_t count) {
  const Rank root(static_cast<std::uint16_t>(member.ranks() - 1));
  const bool is_root = member.rank() == root.value;

  std::vector<float> data = tensor(member.rank(), count);
  Collective broadcast = collective(OpKind::broadcast, count, nullptr, data.data());
  broadcast.root = root;
  ASSERT_TRUE(member.run(broadcast).ok());
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(data[i], element(root.value, i)) << i;

  data = tensor(member.rank(), count);
  std::vector<float> total(is_root ? count : 0);
  Collective reduce = collective(OpKind::reduce, count, data.data(), total.data());
  reduce.root = root;
  ASSERT_TRUE(member.run(reduce).ok());
  for (std::size_t i = 0; i < total.size(); ++i) ASSERT_EQ(total[i], sum(member.ranks(), i)) << i;

  std::vector<float> all(is_root ? count * member.ranks() : 0);
  Collective gather = collective(OpKind::gather, count, data.data(), all.data());
  gather.root = root;
  ASSERT_TRUE(member.run(gather).ok());
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], element(i / count, i % count));

  const std::vector<float> parts =
      is_root ? tensor(root.value, count * member.ranks()) : std::vector<float>();
  std::vector<float> part(count);
  Collective scatter = collective(OpKind::scatter, count, parts.data(), part.data());
  scatter.root = root;
  ASSERT_TRUE(member.run(scatter).ok());
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(part[i], element(root.value, member.rank() * count + i)) << i;
  }
}

void check_all_kinds(TestRank& member, std::size_t count) {
  check_all_reduce(member, count);
  check_reduce_scatter(member, count);
  check_all_gather(member, count);
  check_all_to_all(member, count);
  check_rooted(member, count);
  ASSERT_TRUE(member.run(collective(OpKind::barrier, 0, nullptr, nullptr)).ok());
}

TEST(UdpCollectives, TwoRanksReduce) {
  with_ranks({.ranks = 2}, [](TestRank& member) {
    for (const std::size_t count : {1, 4, 1000, 100'000}) check_all_reduce(member, count);
  });
}

class UdpGroups : public testing::TestWithParam<GroupOptions> {};

TEST_P(UdpGroups, ComputeAllKinds) {
  with_ranks(GetParam(), [](TestRank& member) {
    for (const std::size_t count : {1, 37, 1000, 60'000}) check_all_kinds(member, count);
  });
}

constexpr Faults two_percent{.loss = 0.02, .duplication = 0.02, .reordering = 0.02};
INSTANTIATE_TEST_SUITE_P(
    , UdpGroups,
    testing::Values(GroupOptions{.ranks = 1}, GroupOptions{.ranks = 2}, GroupOptions{.ranks = 3},
                    GroupOptions{.ranks = 4, .mtu = 9000}, GroupOptions{.ranks = 8},
                    GroupOptions{.ranks = 3, .mtu = 0}, GroupOptions{.ranks = 2, .gso = false},
                    GroupOptions{.ranks = 2, .faults = two_percent, .seed = 11},
                    GroupOptions{.ranks = 4, .faults = two_percent, .seed = 12},
                    GroupOptions{.ranks = 8, .faults = two_percent, .seed = 13}),
    [](const auto& of) {
      const GroupOptions& options = of.param;
      return std::to_string(options.ranks) + "RanksMtu" + std::to_string(options.mtu) +
             (options.gso ? "" : "WithoutGso") + (options.faults.loss > 0 ? "Lossy" : "");
    });

}  // namespace
}  // namespace cais::runtime
