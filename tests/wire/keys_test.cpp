#include "wire/keys.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/wire/some_keys.hpp"
#include "wire/header.hpp"

namespace cais::wire {
namespace {

std::vector<std::byte> packet_of(Kind kind, Rank rank, Epoch epoch, const Keys& keys) {
  Header header;
  header.session = SessionId(1);
  header.epoch = epoch;
  header.rank = rank;
  header.kind = kind;
  std::vector<std::byte> packet(header_bytes + 100, std::byte{7});
  serialize(header, std::span(packet).subspan(header_bytes), keys,
            std::span(packet).first<header_bytes>());
  return packet;
}

constexpr Epoch epoch(3);

TEST(Keys, NoTwoAreTheSame) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  const auto is_new = [&seen](const SipKey& key) { return seen.insert({key.k0, key.k1}).second; };
  for (const std::uint64_t session : {1u, 2u}) {
    for (const unsigned life : {1u, 2u, 65535u}) {
      const Keys keys = keys_of(session, Epoch(static_cast<std::uint16_t>(life)));
      EXPECT_TRUE(is_new(keys.of_switches()));
      EXPECT_TRUE(is_new(*keys.of_children()));
      EXPECT_TRUE(is_new(keys.of_payloads().sip));
      EXPECT_TRUE(is_new({keys.seed(), 0}));
      const auto& words = keys.of_payloads().nh.words;
      EXPECT_TRUE(is_new({words[0], words[1]}));
      EXPECT_EQ(std::set(words.begin(), words.end()).size(), words.size());
      for (std::uint16_t rank = 0; rank < ranks_max; ++rank) {
        EXPECT_TRUE(is_new(*keys.of_rank(Rank(rank))));
      }
    }
  }
}

TEST(Keys, ARankAndWhoServesItHaveTheSame) {
  for (const Tags tags : {Tags::keyed, Tags::checksum}) {
    const Keys all = keys_of(9, epoch, tags);
    const Keys own = Keys::of_rank(tags, secrets_of(secret_number(9), Rank(2)), Rank(2), epoch);
    EXPECT_TRUE(tag_is_right(packet_of(Kind::contribution, Rank(2), epoch, own), all));
    EXPECT_TRUE(tag_is_right(packet_of(Kind::result, Rank(1), epoch, all), own));
  }
}

TEST(Keys, ARankCannotSpeakAsAnother) {
  const Keys all = keys_of(9, epoch);
  const Keys own =
      Keys::of_rank(Tags::keyed, secrets_of(secret_number(9), Rank(2)), Rank(2), epoch);
  EXPECT_EQ(own.of_rank(Rank(1)), nullptr);
  EXPECT_EQ(own.of_rank(Rank(3)), nullptr);
  EXPECT_FALSE(tag_is_right(packet_of(Kind::contribution, Rank(3), epoch, all), own));
  // Its own key over a header that names rank 3: what the header says is what the switch goes by.
  auto packet = packet_of(Kind::contribution, Rank(2), epoch, own);
  packet[rank_at + 1] = std::byte{3};
  EXPECT_FALSE(tag_is_right(packet, all));
  // The same tag that rank 2 would make for "rank 3" if it put its key in that place.
  const RankSecrets secrets = secrets_of(secret_number(9), Rank(2));
  const Keys pretended = Keys::of_rank(Tags::keyed, secrets, Rank(3), epoch);
  EXPECT_FALSE(tag_is_right(packet_of(Kind::contribution, Rank(3), epoch, pretended), all));
}

TEST(Keys, ARankDoesNotSpeakAsASwitch) {
  const Keys all = keys_of(9, epoch);
  const RankSecrets secrets = secrets_of(secret_number(9), Rank(2));
  const Keys own = Keys::of_rank(Tags::keyed, secrets, Rank(2), epoch);
  EXPECT_EQ(own.of_children(), nullptr);
  auto packet = packet_of(Kind::contribution, Rank(2), epoch, own);
  packet[level_at] |= std::byte{1};
  EXPECT_FALSE(tag_is_right(packet, all));
  EXPECT_FALSE(tag_is_right(packet, own));
}

TEST(Keys, WhatIsReflectedIsNotTaken) {
  const Keys all = keys_of(9, epoch);
  auto result = packet_of(Kind::result, Rank(2), epoch, all);
  result[kind_at] = static_cast<std::byte>(Kind::contribution);
  EXPECT_FALSE(tag_is_right(result, all));
  auto contribution = packet_of(Kind::contribution, Rank(2), epoch, all);
  contribution[kind_at] = static_cast<std::byte>(Kind::result);
  EXPECT_FALSE(tag_is_right(contribution, all));
  // Even a pretender who may choose the header cannot make one direction's tag for the other.
  const Keys own =
      Keys::of_rank(Tags::keyed, secrets_of(secret_number(9), Rank(2)), Rank(2), epoch);
  EXPECT_NE(own.of_rank(Rank(2))->k0, all.of_switches().k0);
}

TEST(Keys, OfAnotherEpochAreOthers) {
  for (const Tags tags : {Tags::keyed, Tags::checksum}) {
    const Keys before = keys_of(9, epoch, tags);
    const Keys after = before.at(Epoch(4));
    for (const Kind kind : {Kind::contribution, Kind::result}) {
      EXPECT_FALSE(tag_is_right(packet_of(kind, Rank(2), epoch, before), after));
      EXPECT_TRUE(tag_is_right(packet_of(kind, Rank(2), epoch, after), keys_of(9, Epoch(4), tags)));
      EXPECT_TRUE(tag_is_right(packet_of(kind, Rank(2), epoch, before), after.at(epoch)));
    }
  }
}

TEST(Keys, OfOneRankFollowItsEpochs) {
  const Keys own =
      Keys::of_rank(Tags::keyed, secrets_of(secret_number(9), Rank(5)), Rank(5), epoch);
  EXPECT_TRUE(tag_is_right(packet_of(Kind::want, Rank(5), Epoch(8), own.at(Epoch(8))),
                           keys_of(9, Epoch(8))));
}

TEST(Keys, WithoutAnyNothingIsRight) {
  EXPECT_FALSE(tag_is_right(packet_of(Kind::result, Rank(0), epoch, keys_of(9)), Keys()));
}

TEST(Secret, EqualsItselfAlone) {
  const Secret secret = secret_number(9);
  EXPECT_TRUE(equal(secret, secret_number(9)));
  for (std::size_t bit = 0; bit < 8 * secret.bytes.size(); ++bit) {
    Secret other = secret;
    other.bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    EXPECT_FALSE(equal(secret, other)) << bit;
  }
}

}  // namespace
}  // namespace cais::wire
