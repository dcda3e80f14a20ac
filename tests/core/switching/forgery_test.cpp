// Packets that nobody who has the sender's key has made (P13): the switch counts them as wrong_tag,
// answers nothing, and stays as it was.
#include <gtest/gtest.h>

#include <array>

#include "base/fingerprint.hpp"
#include "base/rng.hpp"
#include "core/switching/switch.hpp"
#include "tests/wire/some_keys.hpp"

namespace cais::switching {
namespace {

using wire::Kind;
using wire::Tags;

constexpr SessionId session{3};
constexpr Epoch epoch{1};
constexpr std::uint16_t ranks = 3;
constexpr std::uint32_t fragment_bytes = 64;
constexpr std::uint64_t secret = 11;

wire::CommDescriptor op() {
  wire::DescriptorSpec spec;
  spec.kind = OpKind::all_reduce;
  spec.reduce_op = ReduceOp::sum;
  spec.dtype = DType::int32;
  spec.ranks = ranks;
  spec.unit_elements = 1024;
  spec.fragment_bytes = fragment_bytes;
  return *wire::make_descriptor(spec);
}

wire::Header header_of(Rank rank, Kind kind = Kind::contribution) {
  wire::Header header;
  header.session = session;
  header.epoch = epoch;
  header.rank = rank;
  header.kind = kind;
  header.descriptor = wire::hash(op());
  return header;
}

std::vector<std::byte> packet_of(const wire::Header& header, const wire::Keys& keys,
                                 Round round = {}) {
  const std::size_t payload = header.kind == Kind::want ? wire::want_bytes : fragment_bytes;
  std::vector<std::byte> packet(wire::header_bytes + payload, std::byte{1});
  wire::serialize(header, std::span(packet).subspan(wire::header_bytes), keys,
                  std::span(packet).first<wire::header_bytes>(), round);
  return packet;
}

/// A switch that has the first contribution of rank 0.
class Forgery : public testing::Test {
 protected:
  Forgery() { open(epoch); }

  void open(Epoch of) {
    machine_.close(session);
    ASSERT_TRUE(
        machine_.open({session, of, ranks, 1, 1, 4, fragment_bytes, wire::keys_of(secret, of)})
            .ok());
    ASSERT_TRUE(machine_.define(session, op()).ok());
    for (std::uint16_t rank = 0; rank < ranks; ++rank) {
      ASSERT_TRUE(machine_.bind(session, Rank(rank), Port(rank)).ok());
    }
    wire::Header header = header_of(Rank(0));
    header.epoch = of;
    ASSERT_EQ(take(packet_of(header, wire::keys_of(secret, of)), Rank(0)), Drop::none);
  }

  /// From the address of `rank`: whoever forges a tag forges that, too.
  Drop take(std::span<const std::byte> packet, Rank rank) {
    return machine_.receive(Port(rank.value), {packet, {}});
  }

  std::uint64_t state() const {
    Fingerprint walk;
    machine_.fingerprint(walk);
    return walk.value();
  }

  Drop refused(std::span<const std::byte> packet, Rank rank) {
    const std::uint64_t before = state();
    const Counters counted = machine_.counters();
    const Drop drop = take(packet, rank);
    EXPECT_NE(drop, Drop::none);
    EXPECT_EQ(state(), before);
    Transmit out;
    while (machine_.poll_transmit(out)) {
      // Nothing but that there is no session of that number (P16).
      EXPECT_EQ(drop, Drop::unknown_session);
      EXPECT_TRUE(out.payload.empty());
    }
    Event event;
    EXPECT_FALSE(machine_.poll_event(event));
    for (std::size_t i = 0; i < std::size(counted.dropped); ++i) {
      EXPECT_EQ(machine_.counters().dropped[i], counted.dropped[i] + (i == std::size_t(drop)));
    }
    return drop;
  }

  Switch machine_;
  const wire::Keys keys_ = wire::keys_of(secret, epoch);
  const std::vector<std::byte> genuine_ = packet_of(header_of(Rank(1)), keys_);
};

/// 2^32 fragments ago the same seq had another tag, and will have.
TEST_F(Forgery, PacketsOfOtherRoundsOfTheSeqsAreNotTaken) {
  for (const std::uint32_t round : {1u, 2u, 0xffffffffu}) {
    EXPECT_EQ(refused(packet_of(header_of(Rank(1)), keys_, Round(round)), Rank(1)),
              Drop::wrong_tag);
  }
  wire::Header beyond = header_of(Rank(1));  // one in the round before
  beyond.seq = Seq(0xffffffff);
  EXPECT_EQ(refused(packet_of(beyond, keys_), Rank(1)), Drop::wrong_tag);
  EXPECT_EQ(take(genuine_, Rank(1)), Drop::none);
}

TEST_F(Forgery, EachFlippedBitIsSeen) {
  for (const auto& good : {genuine_, packet_of(header_of(Rank(1), Kind::want), keys_)}) {
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
      auto bad = good;
      bad[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
      const Drop drop = refused(bad, Rank(1));
      // Session, epoch, rank, lane, kind, version and level are looked at before the tag.
      const bool by_tag = (bit / 8 >= 4 && bit / 8 < 8) || bit / 8 == 14 || bit / 8 >= 16;
      EXPECT_TRUE(!by_tag || drop == Drop::wrong_tag) << "bit " << bit << ": " << to_string(drop);
    }
  }
  EXPECT_EQ(take(genuine_, Rank(1)), Drop::none);
}

TEST_F(Forgery, WhatIsCutOffIsSeen) {
  for (std::size_t size = 0; size < genuine_.size(); ++size) {
    EXPECT_EQ(refused(std::span(genuine_).first(size), Rank(1)),
              size < wire::header_bytes ? Drop::malformed : Drop::wrong_tag)
        << size;
  }
}

TEST_F(Forgery, GuessedTagsAreWrong) {
  Rng rng(1);
  for (int guess = 0; guess < 10'000; ++guess) {
    auto bad = genuine_;
    wire::store_network(&bad[wire::header_bytes - 8], rng.next());
    EXPECT_EQ(refused(bad, Rank(1)), Drop::wrong_tag);
  }
}

TEST_F(Forgery, ARankDoesNotSpeakAsAnother) {
  const wire::RankSecrets own = wire::secrets_of(wire::secret_number(secret), Rank(2));
  const auto pretended = wire::Keys::of_rank(Tags::keyed, own, Rank(1), epoch);
  EXPECT_EQ(refused(packet_of(header_of(Rank(1)), pretended), Rank(1)), Drop::wrong_tag);
  // Nor does it pass on as its own what another one has made.
  auto taken = genuine_;
  taken[wire::rank_at + 1] = std::byte{2};
  EXPECT_EQ(refused(taken, Rank(2)), Drop::wrong_tag);
}

TEST_F(Forgery, AResultThatComesBackIsNoContribution) {
  ASSERT_EQ(take(genuine_, Rank(1)), Drop::none);
  ASSERT_EQ(take(packet_of(header_of(Rank(2)), keys_), Rank(2)), Drop::none);
  Transmit out;
  ASSERT_TRUE(machine_.poll_transmit(out));
  std::vector<std::byte> result(out.header.begin(), out.header.end());
  result.insert(result.end(), out.payload.begin(), out.payload.end());
  while (machine_.poll_transmit(out)) {
  }
  EXPECT_EQ(refused(result, Rank(0)), Drop::wrong_kind);
  result[wire::kind_at] = static_cast<std::byte>(Kind::contribution);
  EXPECT_EQ(refused(result, Rank(0)), Drop::wrong_tag);
  // With the switches' key itself, over a header that says contribution.
  const wire::SipKey& key = keys_.of_switches();
  EXPECT_NE(key.k0, keys_.of_rank(Rank(0))->k0);
}

TEST_F(Forgery, APacketOfAnotherEpochIsNotTaken) {
  EXPECT_EQ(refused(packet_of(header_of(Rank(1)), keys_.at(Epoch(2))), Rank(1)), Drop::wrong_tag);
  open(Epoch(2));
  EXPECT_EQ(refused(genuine_, Rank(1)), Drop::wrong_epoch);
  auto renamed = genuine_;
  renamed[9] = std::byte{2};  // the epoch's low byte
  EXPECT_EQ(refused(renamed, Rank(1)), Drop::wrong_tag);
}

TEST_F(Forgery, KeysFollowTheEpochsOfASession) {
  constexpr Epoch next{2};
  const std::array from{Seq(0)};
  ASSERT_TRUE(machine_.fence(session, next).ok());
  ASSERT_TRUE(machine_.resume(session, next, 1, from).ok());
  auto renamed = genuine_;
  renamed[9] = std::byte{2};
  EXPECT_EQ(refused(renamed, Rank(1)), Drop::wrong_tag);
  wire::Header header = header_of(Rank(1));
  header.epoch = next;
  EXPECT_EQ(refused(packet_of(header, keys_), Rank(1)), Drop::wrong_tag);
  EXPECT_EQ(take(packet_of(header, wire::keys_of(secret, next)), Rank(1)), Drop::none);
}

TEST_F(Forgery, APacketOfAnotherSessionIsNotTaken) {
  EXPECT_EQ(refused(packet_of(header_of(Rank(1)), wire::keys_of(secret + 1)), Rank(1)),
            Drop::wrong_tag);
  // Not even one that says nothing but that it is not damaged.
  const auto checksum = wire::keys_of(secret, epoch, Tags::checksum);
  EXPECT_EQ(refused(packet_of(header_of(Rank(1)), checksum), Rank(1)), Drop::wrong_tag);
}

TEST_F(Forgery, AReplayChangesNothing) {
  ASSERT_EQ(take(genuine_, Rank(1)), Drop::none);
  const std::uint64_t before = state();
  EXPECT_EQ(take(genuine_, Rank(1)), Drop::none);  // a repeat, as losses make them (P7)
  Transmit out;
  while (machine_.poll_transmit(out)) EXPECT_LE(out.payload.size(), genuine_.size());
  EXPECT_EQ(state(), before);
}

}  // namespace
}  // namespace cais::switching
