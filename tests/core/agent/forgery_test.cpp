// Packets that no switch of the session has made: the agent counts them as dropped_tag, sends
// nothing, writes nothing, and stays as it was.
#include <gtest/gtest.h>

#include <array>

#include "base/fingerprint.hpp"
#include "base/rng.hpp"
#include "core/agent/agent.hpp"
#include "sim/workload.hpp"
#include "tests/wire/some_keys.hpp"

namespace cais::agent {
namespace {

using wire::Kind;
using wire::Tags;

constexpr SessionId session{3};
constexpr Epoch epoch{1};
constexpr std::uint64_t secret = 11;
constexpr Instant now(std::chrono::milliseconds(1));

sim::Job all_reduce() {
  Rng rng(1);
  wire::DescriptorSpec spec;
  spec.kind = OpKind::all_reduce;
  spec.reduce_op = ReduceOp::sum;
  spec.dtype = DType::int32;
  spec.ranks = 2;
  spec.unit_elements = 32;
  spec.fragment_bytes = 64;
  return sim::make_job(rng, spec, 0, sim::Tree(spec.ranks));
}

/// Rank 0 of two at a box, with both fragments of an all_reduce under way.
class Forgery : public testing::Test {
 protected:
  Forgery()
      : job_(all_reduce()),
        agent_({session, epoch, Rank(0), 2, 1, 4,
                wire::Keys::of_rank(Tags::keyed,
                                    wire::secrets_of(wire::secret_number(secret), Rank(0)), Rank(0),
                                    epoch)}) {
    agent_.submit(job_.submits[0]);
    Transmit out;
    while (agent_.poll_transmit(now, out)) {
      sent_.assign(out.header.begin(), out.header.end());
      sent_.insert(sent_.end(), out.payload.begin(), out.payload.end());
      sent_.insert(sent_.end(), out.padding.begin(), out.padding.end());
    }
  }

  std::vector<std::byte> packet_of(Kind kind, const wire::Keys& keys, Round round = {}) const {
    wire::Header header;
    header.session = session;
    header.epoch = epoch;
    header.kind = kind;
    header.descriptor = wire::hash(job_.descriptor);
    header.flags = wire::flag_finished;
    header.chunk = 1;
    std::size_t payload = 0;
    if (kind == Kind::result) payload = job_.plan.fragment_bytes;
    if (kind == Kind::waiting) payload = wire::stamp_bytes;
    std::vector<std::byte> packet(wire::header_bytes + payload, std::byte{1});
    wire::serialize(header, std::span(packet).subspan(wire::header_bytes), keys,
                    std::span(packet).first<wire::header_bytes>(), round);
    return packet;
  }

  std::uint64_t state() const {
    Fingerprint walk;
    agent_.fingerprint(now, walk);
    return walk.value();
  }

  /// Whether it is the tag that gave it away.
  bool refused(std::span<const std::byte> packet) {
    const std::uint64_t before = state();
    const Counters counted = agent_.counters();
    const auto output = std::vector(job_.output(0), job_.output(0) + job_.plan.unit_bytes);
    agent_.receive(now, packet);
    EXPECT_EQ(agent_.counters().accepted, counted.accepted);
    EXPECT_EQ(state(), before);
    Transmit out;
    EXPECT_FALSE(agent_.poll_transmit(now, out));
    Event event;
    EXPECT_FALSE(agent_.poll_event(event));
    EXPECT_TRUE(std::equal(output.begin(), output.end(), job_.output(0)));
    return agent_.counters().dropped_tag == counted.dropped_tag + 1;
  }

  const sim::Job job_;
  Agent agent_;
  std::vector<std::byte> sent_;  // its last contribution
  const wire::Keys keys_ = wire::keys_of(secret, epoch);
};

TEST_F(Forgery, EachFlippedBitIsSeen) {
  for (const Kind kind : {Kind::result, Kind::done, Kind::nak, Kind::waiting}) {
    const auto good = packet_of(kind, keys_);
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
      auto bad = good;
      bad[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
      const bool by_tag = refused(bad);
      // Session, epoch, lane, rank, version and place may give it away before.
      const bool must_be = bit / 8 == 14 || bit / 8 >= 16;
      EXPECT_TRUE(by_tag || !must_be) << to_string(kind) << " bit " << bit;
    }
  }
  agent_.receive(now, packet_of(Kind::result, keys_));
  EXPECT_EQ(agent_.counters().accepted, 1u);
}

TEST_F(Forgery, WhatIsCutOffIsSeen) {
  const auto good = packet_of(Kind::result, keys_);
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(refused(std::span(good).first(size)), size >= wire::header_bytes) << size;
  }
}

TEST_F(Forgery, GuessedTagsAreWrong) {
  Rng rng(1);
  for (int guess = 0; guess < 1000; ++guess) {
    auto bad = packet_of(Kind::result, keys_);
    wire::store_network(&bad[wire::header_bytes - 8], rng.next());
    EXPECT_TRUE(refused(bad));
  }
}

TEST_F(Forgery, AContributionThatComesBackIsNoResult) {
  refused(sent_);
  auto bad = sent_;
  bad[wire::kind_at] = static_cast<std::byte>(Kind::result);
  EXPECT_TRUE(refused(bad));
}

TEST_F(Forgery, PacketsOfOtherEpochsAndSessionsAreNotTaken) {
  EXPECT_TRUE(refused(packet_of(Kind::result, keys_.at(Epoch(2)))));
  EXPECT_TRUE(refused(packet_of(Kind::result, wire::keys_of(secret + 1))));
  EXPECT_TRUE(refused(packet_of(Kind::result, wire::keys_of(secret, epoch, Tags::checksum))));
}

TEST_F(Forgery, PacketsOfOtherRoundsOfTheSeqsAreNotTaken) {
  for (const Kind kind : {Kind::result, Kind::done, Kind::nak, Kind::waiting}) {
    for (const std::uint32_t round : {1u, 2u, 0xffffffffu}) {
      EXPECT_TRUE(refused(packet_of(kind, keys_, Round(round)))) << to_string(kind);
    }
  }
}

TEST_F(Forgery, KeysFollowTheEpochsOfASession) {
  constexpr Epoch next{2};
  const std::array from{agent_.first_unsettled(Lane(0))};
  agent_.fence();
  ASSERT_TRUE(agent_.resume(next, from).ok());
  Transmit out;
  ASSERT_TRUE(agent_.poll_transmit(now, out));
  std::vector<std::byte> packet(out.header.begin(), out.header.end());
  packet.insert(packet.end(), out.payload.begin(), out.payload.end());
  packet.insert(packet.end(), out.padding.begin(), out.padding.end());
  EXPECT_TRUE(wire::tag_is_right(packet, wire::keys_of(secret, next)));
  EXPECT_FALSE(wire::tag_is_right(packet, keys_));
  while (agent_.poll_transmit(now, out)) {
  }
  auto renamed = packet_of(Kind::result, keys_);
  renamed[9] = std::byte{2};
  EXPECT_TRUE(refused(renamed));
}

TEST_F(Forgery, AReplayChangesNothing) {
  const auto result = packet_of(Kind::result, keys_);
  agent_.receive(now, result);
  ASSERT_EQ(agent_.counters().accepted, 1u);
  refused(result);
}

}  // namespace
}  // namespace cais::agent
