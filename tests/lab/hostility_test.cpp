#include "tests/lab/hostility.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/wire/some_keys.hpp"
#include "wire/header.hpp"

namespace cais::lab {
namespace {

constexpr std::size_t packet_at = 42;
const wire::Keys keys = wire::keys_of(5);

/// A contribution of 64 bytes from one host to the other.
std::vector<std::byte> frame() {
  std::vector<std::byte> bytes(packet_at + wire::header_bytes + 64, std::byte{7});
  bytes[12] = std::byte{0x08};
  bytes[13] = std::byte{0};
  bytes[14] = std::byte{0x45};
  bytes[14 + 9] = std::byte{17};
  wire::Header header;
  header.session = SessionId(3);
  header.kind = wire::Kind::contribution;
  const auto packet = std::span(bytes).subspan(packet_at);
  wire::serialize(header, packet.subspan(wire::header_bytes), keys,
                  packet.first<wire::header_bytes>());
  return bytes;
}

TEST(Hostility, HasNothingToSayBeforeItHasSeenAPacket) {
  Hostility hostility(1);
  EXPECT_FALSE(hostility.next());
  std::vector<std::byte> arp(60, std::byte{1});
  hostility.learn(arp);
  EXPECT_FALSE(hostility.next());
}

TEST(Hostility, MakesEveryKindAndNoneThatIsRightButReplays) {
  Hostility hostility(1);
  const std::vector<std::byte> real = frame();
  hostility.learn(real);
  for (int i = 0; i < 1100; ++i) {
    const auto made = hostility.next();
    ASSERT_TRUE(made);
    const auto packet = std::span(*made).subspan(packet_at);
    const auto is_real =
        std::equal(packet.begin(), packet.end(), real.begin() + packet_at, real.end());
    wire::Header header;
    const bool right =
        wire::parse(packet, header) == wire::ParseError::none && wire::tag_is_right(packet, keys);
    EXPECT_EQ(right, is_real) << i;  // a replay, or one that drew what was there
  }
  for (const std::uint64_t count : hostility.counts()) EXPECT_EQ(count, 100u);
}

}  // namespace
}  // namespace cais::lab
