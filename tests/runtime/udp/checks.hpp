// What a rank of a group checks: every kind of collective against its reference, and how it fails.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/runtime/udp/group.hpp"

namespace cais::runtime {

// Small integers in float32: any order of adding gives the same bits, and the reference is exact.
inline float element(std::size_t rank, std::size_t index) {
  return static_cast<float>((rank * 7919 + index * 31) % 1009);
}

inline std::vector<float> tensor(std::size_t rank, std::size_t count, std::size_t first = 0) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = element(rank, first + i);
  return values;
}

inline Collective collective(OpKind kind, std::size_t count, const void* send, void* recv) {
  Collective result;
  result.kind = kind;
  result.dtype = DType::float32;
  result.count = count;
  result.send = send;
  result.recv = recv;
  if (wire::reduces(kind)) result.reduce_op = ReduceOp::sum;
  return result;
}

inline float sum(std::size_t ranks, std::size_t index) {
  float total = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) total += element(rank, index);
  return total;
}

inline void check_all_reduce(TestRank& member, std::size_t count) {
  std::vector<float> data = tensor(member.rank(), count);
  const Result<void> outcome =
      member.run(collective(OpKind::all_reduce, count, data.data(), data.data()));
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(data[i], sum(member.ranks(), i)) << i;
}

inline void check_reduce_scatter(TestRank& member, std::size_t count) {
  const std::vector<float> data = tensor(member.rank(), count * member.ranks());
  std::vector<float> shard(count);
  ASSERT_TRUE(
      member.run(collective(OpKind::reduce_scatter, count, data.data(), shard.data())).ok());
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(shard[i], sum(member.ranks(), member.rank() * count + i)) << i;
  }
}

inline void check_all_gather(TestRank& member, std::size_t count) {
  const std::vector<float> shard = tensor(member.rank(), count);
  std::vector<float> all(count * member.ranks());
  ASSERT_TRUE(member.run(collective(OpKind::all_gather, count, shard.data(), all.data())).ok());
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], element(i / count, i % count));
}

inline void check_all_to_all(TestRank& member, std::size_t count) {
  const std::vector<float> data = tensor(member.rank(), count * member.ranks());
  std::vector<float> all(data.size());
  ASSERT_TRUE(member.run(collective(OpKind::all_to_all, count, data.data(), all.data())).ok());
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i], element(i / count, member.rank() * count + i % count)) << i;
  }
}

inline void check_rooted(TestRank& member, std::size_t count) {
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

inline void check_all_kinds(TestRank& member, std::size_t count) {
  check_all_reduce(member, count);
  check_reduce_scatter(member, count);
  check_all_gather(member, count);
  check_all_to_all(member, count);
  check_rooted(member, count);
  ASSERT_TRUE(member.run(collective(OpKind::barrier, 0, nullptr, nullptr)).ok());
}

/// P12: rank 1 calls another collective than the others; all are told, in the same words.
inline void expect_mismatch(TestRank& member) {
  std::vector<float> data(2000, 1.0f);
  const OpKind kind = member.rank() == 1 ? OpKind::all_gather : OpKind::all_reduce;
  const std::size_t count = member.rank() == 1 ? data.size() / member.ranks() : data.size();
  std::vector<float> out(data.size());
  const Instant begin = io::now();
  const Result<void> outcome = member.run(collective(kind, count, data.data(), out.data()));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::mismatch) << outcome.error().message;
  EXPECT_THAT(outcome.error().message, testing::HasSubstr("all_gather"));
  EXPECT_THAT(outcome.error().message, testing::HasSubstr("all_reduce"));
  EXPECT_THAT(outcome.error().message, testing::HasSubstr("rank 1"));
  EXPECT_LT(io::now() - begin, std::chrono::seconds(1));
}

/// P16: the last rank comes late to a collective; the others can say that it is the one.
inline void expect_late_rank(TestRank& member) {
  std::vector<float> data(1000, 1.0f);
  const Collective sum = collective(OpKind::all_reduce, data.size(), data.data(), data.data());
  const std::string name = "rank " + std::to_string(member.ranks() - 1) + " (host";
  if (member.rank() == member.ranks() - 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(800));
    EXPECT_TRUE(member.run(sum).ok());
    return;
  }
  const auto operation = member.start(sum);
  const Instant limit = io::now() + std::chrono::milliseconds(700);
  // Until the others have arrived too, they are named as well.
  const auto names_it_alone = [&](const std::string& words) {
    return words.find("ranks: " + name) != words.npos &&
           words.find("has not arrived") != words.npos;
  };
  std::string words;
  while (io::now() < limit && !names_it_alone(words)) {
    member.transport().progress();
    member.transport().wait(std::chrono::milliseconds(10));
    words = member.transport().waiting_for();
  }
  EXPECT_THAT(words, testing::HasSubstr(name));
  EXPECT_THAT(words, testing::HasSubstr("has not arrived"));
  EXPECT_THAT(words, testing::HasSubstr("all_reduce sum float32 [1000]"));
  EXPECT_THAT(words, testing::Not(testing::HasSubstr("rank 0 (host")));
  EXPECT_TRUE(member.wait(*operation).ok());
  EXPECT_EQ(member.transport().waiting_for(), "");
}

/// P19: the last rank vanishes without a word; the others name it within a second.
inline void expect_lost_rank(TestRank& member) {
  if (member.rank() == member.ranks() - 1) member.vanish();
  std::vector<float> data(1000, 1.0f);
  const Instant begin = io::now();
  const Result<void> outcome =
      member.run(collective(OpKind::all_reduce, data.size(), data.data(), data.data()));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::rank_lost) << outcome.error().message;
  EXPECT_THAT(outcome.error().message,
              testing::HasSubstr("rank " + std::to_string(member.ranks() - 1) + " (host"));
  EXPECT_LT(io::now() - begin, std::chrono::seconds(1));
}

}  // namespace cais::runtime
