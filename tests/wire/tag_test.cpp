// The tag of a packet, keyed or a checksum. What the keys keep apart stands in keys_test.cpp.
#include <gtest/gtest.h>

#include <vector>

#include "tests/wire/random_bytes.hpp"
#include "tests/wire/some_keys.hpp"
#include "wire/header.hpp"

namespace cais::wire {
namespace {

Header example() {
  return {.session = SessionId(0x01020304),
          .seq = Seq(0x05060708),
          .epoch = Epoch(0x090a),
          .rank = Rank(0x000b),
          .lane = Lane(0x0c),
          .kind = Kind::result,
          .flags = flag_repeat,
          .descriptor = DescriptorHash(0x1112131415161718),
          .chunk = 0x191a1b1c,
          .offset = 0x1d1e1f20};
}

std::vector<std::byte> packet_of(const Header& header, std::span<const std::byte> payload,
                                 const Keys& keys, Round round = {}) {
  std::vector<std::byte> packet(header_bytes);
  serialize(header, payload, keys, std::span<std::byte, header_bytes>(packet), round);
  packet.insert(packet.end(), payload.begin(), payload.end());
  return packet;
}

class EveryTag : public testing::TestWithParam<Tags> {
 protected:
  const Keys keys_ = keys_of(0x5eed, Epoch(1), GetParam());
};

INSTANTIATE_TEST_SUITE_P(Tags, EveryTag, testing::Values(Tags::keyed, Tags::checksum),
                         [](const auto& of) { return std::string(to_string(of.param)); });

TEST(Tag, EqualsThatOfAnotherImplementation) {
  const auto tag_of_example = [](Kind kind, std::size_t bytes, Tags tags, std::uint8_t level = 0,
                                 Round round = {}) {
    std::vector<std::byte> payload(bytes);
    for (std::size_t i = 0; i < bytes; ++i) payload[i] = static_cast<std::byte>(i % 251);
    Header header = example();
    header.kind = kind;
    header.level = level;
    Header got;
    const Keys keys = keys_of(0x5eed, header.epoch, tags);
    EXPECT_EQ(parse(packet_of(header, payload, keys, round), got), ParseError::none);
    return got.tag;
  };
  // From a program in Python that follows docs/wire.md.
  EXPECT_EQ(tag_of_example(Kind::result, 0, Tags::keyed), 0x7434626775751214u);
  EXPECT_EQ(tag_of_example(Kind::result, 1, Tags::keyed), 0xf9af15e90442c647u);
  EXPECT_EQ(tag_of_example(Kind::result, 16, Tags::keyed), 0x7fe7b6d390164158u);
  EXPECT_EQ(tag_of_example(Kind::result, 1024, Tags::keyed), 0x739dff5c85d6fff7u);
  EXPECT_EQ(tag_of_example(Kind::result, 8192, Tags::keyed), 0x41d576fab07a3188u);
  EXPECT_EQ(tag_of_example(Kind::contribution, 0, Tags::keyed), 0x6350463d33bc01acu);
  EXPECT_EQ(tag_of_example(Kind::contribution, 1024, Tags::keyed), 0x096ae0f0389fb33cu);
  EXPECT_EQ(tag_of_example(Kind::contribution, 1024, Tags::keyed, 3), 0xd98d5418a34ed3b7u);
  EXPECT_EQ(tag_of_example(Kind::result, 0, Tags::keyed, 3), 0x898a31756c6a7ef1u);
  EXPECT_EQ(tag_of_example(Kind::result, 1024, Tags::keyed, 0, Round(1)), 0xd7e8260ed84fdee0u);
  EXPECT_EQ(tag_of_example(Kind::result, 1024, Tags::keyed, 0, Round(0xfffffffe)),
            0xaae89c1f8cf1f861u);
  EXPECT_EQ(tag_of_example(Kind::result, 0, Tags::checksum), 0x6e41f9d0fbe6e697u);
  EXPECT_EQ(tag_of_example(Kind::result, 1024, Tags::checksum), 0xd39140ff5e86d48fu);
}

/// A packet that comes again 2^32 fragments later is told apart by its tag alone.
TEST(Tag, OfAnotherRoundIsAnother) {
  const Keys keys = keys_of(0x5eed);
  Header header = example();
  header.epoch = Epoch(1);
  const std::vector<std::byte> packet = packet_of(header, {}, keys, Round(1));
  EXPECT_TRUE(tag_is_right(packet, keys, Round(1)));
  EXPECT_FALSE(tag_is_right(packet, keys, Round(0)));
  EXPECT_FALSE(tag_is_right(packet, keys, Round(2)));
}

TEST_P(EveryTag, SeesEveryFlippedBit) {
  Rng rng(3);
  for (std::size_t size : {0u, 1u, 8u, 300u, 1500u}) {
    auto packet = packet_of(example(), random_bytes(rng, size), keys_);
    ASSERT_TRUE(tag_is_right(packet, keys_));
    for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
      packet[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
      EXPECT_FALSE(tag_is_right(packet, keys_)) << "bit " << bit << " of " << size;
      packet[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    }
  }
}

TEST_P(EveryTag, IsWrongUnderTheKeysOfAnotherSession) {
  const auto packet = packet_of(example(), {}, keys_);
  EXPECT_FALSE(tag_is_right(packet, keys_of(0x5eee, Epoch(1), GetParam())));
}

TEST_P(EveryTag, SeesMissingAndAddedBytes) {
  Rng rng(4);
  auto packet = packet_of(example(), random_bytes(rng, 64), keys_);
  for (std::size_t size = 0; size < packet.size(); ++size) {
    EXPECT_FALSE(tag_is_right(std::span(packet).first(size), keys_)) << size;
  }
  packet.push_back(std::byte{0});
  EXPECT_FALSE(tag_is_right(packet, keys_));
}

TEST_P(EveryTag, DoesNotDependOnWhereTheSenderKeptThePadding) {
  Rng rng(5);
  const auto bytes = random_bytes(rng, 8192);
  for (std::size_t size : {16u, 240u, 256u, 1024u, 8192u}) {
    const auto whole = std::span(bytes).first(size);
    std::vector<std::byte> expected(header_bytes), got(header_bytes);
    serialize(example(), whole, keys_, std::span<std::byte, header_bytes>(expected));
    for (std::size_t cut = 0; cut <= size; cut += 1 + rng.below(size / 8 + 1)) {
      serialize(example(), whole.first(cut), whole.subspan(cut), keys_,
                std::span<std::byte, header_bytes>(got));
      EXPECT_EQ(got, expected) << "cut at " << cut << " of " << size;
    }
  }
}

TEST(Tag, OfAChecksumDoesNotPassForAKeyedOne) {
  const auto packet = packet_of(example(), {}, keys_of(0x5eed, Epoch(1), Tags::checksum));
  EXPECT_FALSE(tag_is_right(packet, keys_of(0x5eed)));
}

}  // namespace
}  // namespace cais::wire
