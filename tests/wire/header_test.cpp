#include "wire/header.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/wire/random_bytes.hpp"

namespace cais::wire {
namespace {

constexpr std::uint64_t seed = 0x5eed;

Header example() {
  return {.session = SessionId(0x01020304),
          .seq = Seq(0x05060708),
          .epoch = Epoch(0x090a),
          .rank = Rank(0x000b),
          .lane = Lane(0x0c),
          .kind = Kind::result,
          .flags = flag_repeat,
          .level = 3,
          .descriptor = DescriptorHash(0x1112131415161718),
          .chunk = 0x191a1b1c,
          .offset = 0x1d1e1f20};
}

std::vector<std::byte> packet_of(const Header& header, std::span<const std::byte> payload) {
  std::vector<std::byte> packet(header_bytes);
  serialize(header, payload, seed, std::span<std::byte, header_bytes>(packet));
  packet.insert(packet.end(), payload.begin(), payload.end());
  return packet;
}

TEST(Header, LiesOnTheWireAsTheDocumentDrawsIt) {
  const std::vector<std::byte> packet = packet_of(example(), {});
  const std::uint8_t expected[] = {
      0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x00, 0x0b, 0x0c, 0x02, 0x01,
      0x13, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e,
      0x1f, 0x20,
      // The tag: another implementation of docs/wire.md (Python's xxhash) gave these bytes.
      0x9d, 0x8b, 0xf6, 0xbe, 0x94, 0xb0, 0x3b, 0x17};
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
    sent.rank = Rank(static_cast<std::uint16_t>(rng.next()));
    sent.lane = Lane(static_cast<std::uint8_t>(rng.next()));
    sent.kind = static_cast<Kind>(1 + rng.below(7));
    sent.flags = static_cast<std::uint8_t>(rng.next());
    sent.level = static_cast<std::uint8_t>(rng.below(16));
    sent.descriptor = DescriptorHash(rng.next());
    sent.chunk = static_cast<std::uint32_t>(rng.next());
    sent.offset = static_cast<std::uint32_t>(rng.next());
    const auto packet = packet_of(sent, random_bytes(rng, rng.below(100)));
    Header got;
    ASSERT_EQ(parse(packet, got), ParseError::none);
    EXPECT_TRUE(tag_is_right(packet, seed));
    EXPECT_EQ(to_string(got), to_string(sent));
    EXPECT_EQ(got.flags, sent.flags);
  }
}

TEST(Header, SaysWhyBytesAreNoHeader) {
  const auto good = packet_of(example(), {});
  Header out;
  for (std::size_t size = 0; size < header_bytes; ++size) {
    EXPECT_EQ(parse(std::span(good).first(size), out), ParseError::too_short) << size;
    EXPECT_FALSE(tag_is_right(std::span(good).first(size), seed));
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
    EXPECT_FALSE(tag_is_right(bytes, seed));
  }
}

TEST(Tag, EqualsThatOfAnotherImplementation) {
  std::vector<std::byte> payload(1024);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i % 251);
  Header got;
  ASSERT_EQ(parse(packet_of(example(), payload), got), ParseError::none);
  EXPECT_EQ(got.tag, 0x005574078d9efe2cu);  // Python's xxhash
}

TEST(Tag, SeesEveryFlippedBit) {
  Rng rng(3);
  for (std::size_t size : {0u, 1u, 8u, 300u}) {
    auto packet = packet_of(example(), random_bytes(rng, size));
    ASSERT_TRUE(tag_is_right(packet, seed));
    for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
      packet[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
      EXPECT_FALSE(tag_is_right(packet, seed)) << "bit " << bit << " of " << size;
      packet[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    }
  }
}

TEST(Tag, IsWrongUnderTheSeedOfAnotherSession) {
  const auto packet = packet_of(example(), {});
  EXPECT_FALSE(tag_is_right(packet, seed + 1));
}

TEST(Tag, SeesMissingAndAddedBytes) {
  Rng rng(4);
  auto packet = packet_of(example(), random_bytes(rng, 64));
  EXPECT_FALSE(tag_is_right(std::span(packet).first(packet.size() - 1), seed));
  packet.push_back(std::byte{0});
  EXPECT_FALSE(tag_is_right(packet, seed));
}

TEST(Tag, DoesNotDependOnWhereTheSenderKeptThePadding) {
  Rng rng(5);
  const auto bytes = random_bytes(rng, 8192);
  for (std::size_t size : {16u, 240u, 256u, 1024u, 8192u}) {
    const auto whole = std::span(bytes).first(size);
    std::vector<std::byte> expected(header_bytes), got(header_bytes);
    serialize(example(), whole, seed, std::span<std::byte, header_bytes>(expected));
    for (std::size_t cut = 0; cut <= size; cut += 1 + rng.below(size / 8 + 1)) {
      serialize(example(), whole.first(cut), whole.subspan(cut), seed,
                std::span<std::byte, header_bytes>(got));
      EXPECT_EQ(got, expected) << "cut at " << cut << " of " << size;
    }
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
            "result session 16909060 epoch 2314 lane 12 seq 84281096 rank 11 level 3 chunk "
            "421141276 offset 3908106496 op 1112131415161718 repeat finished");
}

}  // namespace
}  // namespace cais::wire
