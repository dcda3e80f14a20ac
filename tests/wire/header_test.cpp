#include "wire/header.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/wire/random_bytes.hpp"
#include "tests/wire/some_keys.hpp"

namespace cais::wire {
namespace {

const Keys keys = keys_of(0x5eed, Epoch(0x090a));

Header example() {
  return {.session = SessionId(0x01020304),
          .seq = Seq(0x05060708),
          .epoch = Epoch(0x090a),
          .rank = Rank(0x000b),
          .lane = Lane(0x0c),
          .kind = Kind::contribution,
          .flags = flag_repeat,
          .level = 3,
          .descriptor = DescriptorHash(0x1112131415161718),
          .chunk = 0x191a1b1c,
          .offset = 0x1d1e1f20};
}

std::vector<std::byte> packet_of(const Header& header, std::span<const std::byte> payload) {
  std::vector<std::byte> packet(header_bytes);
  serialize(header, payload, keys, std::span<std::byte, header_bytes>(packet));
  packet.insert(packet.end(), payload.begin(), payload.end());
  return packet;
}

TEST(Header, LiesOnTheWireAsTheDocumentDrawsIt) {
  const std::vector<std::byte> packet = packet_of(example(), {});
  const std::uint8_t expected[] = {
      0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x00, 0x0b, 0x0c, 0x01, 0x01,
      0x13, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e,
      0x1f, 0x20,
      // The tag: another implementation of docs/wire.md, in Python, gave these bytes.
      0x97, 0x46, 0xbd, 0xb4, 0x0e, 0x76, 0x2c, 0x5c};
  ASSERT_EQ(packet.size(), std::size(expected));
  for (std::size_t i = 0; i < packet.size(); ++i) {
    EXPECT_EQ(std::to_integer<unsigned>(packet[i]), expected[i]) << "byte " << i;
  }
}

TEST(Header, ParsesToWhatWasSerialized) {
  Rng rng(1);
  for (int round = 0; round < 1000; ++round) {
    Header sent;
    sent.session = SessionId(static_cast<std::uint32_t>(rng.next() | 1));
    sent.seq = Seq(static_cast<std::uint32_t>(rng.next()));
    sent.epoch = Epoch(static_cast<std::uint16_t>(rng.next()));
    sent.rank = Rank(static_cast<std::uint16_t>(rng.below(ranks_max)));
    sent.lane = Lane(static_cast<std::uint8_t>(rng.next()));
    sent.kind = static_cast<Kind>(1 + rng.below(8));
    sent.flags = static_cast<std::uint8_t>(rng.next());
    sent.level = static_cast<std::uint8_t>(rng.below(16));
    sent.descriptor = DescriptorHash(rng.next());
    sent.chunk = static_cast<std::uint32_t>(rng.next());
    sent.offset = static_cast<std::uint32_t>(rng.next());
    const auto packet = packet_of(sent, random_bytes(rng, rng.below(100)));
    Header got;
    ASSERT_EQ(parse(packet, got), ParseError::none);
    EXPECT_TRUE(tag_is_right(packet, keys));
    EXPECT_EQ(to_string(got), to_string(sent));
    EXPECT_EQ(got.flags, sent.flags);
  }
}

TEST(Header, SaysWhyBytesAreNoHeader) {
  const auto good = packet_of(example(), {});
  Header out;
  for (std::size_t size = 0; size < header_bytes; ++size) {
    EXPECT_EQ(parse(std::span(good).first(size), out), ParseError::too_short) << size;
    EXPECT_FALSE(tag_is_right(std::span(good).first(size), keys));
  }
  auto bad = good;
  bad[15] = std::byte{0x23};
  EXPECT_EQ(parse(bad, out), ParseError::bad_version);
  for (unsigned kind : {0u, 9u, 255u}) {
    bad = good;
    bad[13] = static_cast<std::byte>(kind);
    EXPECT_EQ(parse(bad, out), ParseError::bad_kind) << kind;
  }
  bad = good;
  std::fill_n(bad.begin(), 4, std::byte{0});
  EXPECT_EQ(parse(bad, out), ParseError::zero_session);
}

TEST(Header, TakesAnyBytes) {
  Rng rng(2);
  for (int round = 0; round < 20'000; ++round) {
    const auto bytes = random_bytes(rng, rng.below(128));
    Header out;
    if (parse(bytes, out) != ParseError::none) continue;
    EXPECT_NE(out.session, SessionId(0));
    EXPECT_LE(out.level, 15);
    EXPECT_FALSE(tag_is_right(bytes, keys));
  }
}

TEST(ControlPayloads, RoundTripAndRefuseOtherLengths) {
  Want want{};
  ASSERT_TRUE(parse(serialize(Want{0x0123456789abcdef}), want));
  EXPECT_EQ(want.ranks, 0x0123456789abcdefu);

  const Mismatch sent{Rank(3), Rank(63), DescriptorHash(7), DescriptorHash(8)};
  Mismatch got;
  auto bytes = serialize(sent);
  ASSERT_TRUE(parse(bytes, got));
  EXPECT_EQ(got.first, sent.first);
  EXPECT_EQ(got.second, sent.second);
  EXPECT_EQ(got.first_descriptor, sent.first_descriptor);
  EXPECT_EQ(got.second_descriptor, sent.second_descriptor);

  const std::array<std::byte, 32> any{};
  for (std::size_t size = 0; size < any.size(); ++size) {
    EXPECT_EQ(parse(std::span(any).first(size), want), size == want_bytes);
    EXPECT_EQ(parse(std::span(any).first(size), got), size == mismatch_bytes);
  }
  bytes[1] = std::byte{64};
  EXPECT_FALSE(parse(bytes, got)) << "rank 64 is out of range";
}

TEST(ControlPayloads, RanksThatAreWaitedForStandInTheHeader) {
  Rng rng(4);
  for (int round = 0; round < 100; ++round) {
    Header sent = example();
    sent.kind = Kind::waiting;
    const std::uint64_t ranks = rng.next();
    name_ranks(sent, ranks);
    Header received;
    ASSERT_EQ(parse(packet_of(sent, {}), received), ParseError::none);
    EXPECT_EQ(named_ranks(received), ranks);
  }
}

TEST(Header, IsReadable) {
  Header header = example();
  header.flags = flag_repeat | flag_finished;
  EXPECT_EQ(to_string(header),
            "contribution session 16909060 epoch 2314 lane 12 seq 84281096 rank 11 level 3 chunk "
            "421141276 offset 3908106496 op 1112131415161718 repeat finished");
}

}  // namespace
}  // namespace cais::wire
