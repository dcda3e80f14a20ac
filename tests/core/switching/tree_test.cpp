// Switches in a tree (P9): where one may stand, and what sums of halves come to (P8). What the
// protocol says of packets stands in tests/scenarios/p09_*.pkt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/switching/switch.hpp"
#include "tests/wire/some_keys.hpp"

namespace cais::switching {
namespace {

using testing::HasSubstr;

constexpr SessionId session{3};
constexpr std::uint64_t secret = 11;
constexpr std::uint32_t fragment_bytes = 16;

SessionConfig config_of(std::uint16_t ranks, TreePlace place, std::uint32_t payload_bytes = 32) {
  return {session, Epoch(1),        ranks, 1, 1, 4, payload_bytes, wire::keys_of(secret),
          Seq(0),  std::move(place)};
}

std::string refusal(TreePlace place) {
  Switch machine;
  const auto opened = machine.open(config_of(4, std::move(place)));
  return opened.ok() ? "opened" : opened.error().message;
}

TEST(Tree, RefusesPlacesThatCannotBe) {
  EXPECT_EQ(refusal({}), "opened");
  EXPECT_EQ(refusal({.level = 3, .has_parent = false, .children = {0b1, 0b1110}}), "opened");
  EXPECT_THAT(refusal({.level = 0, .has_parent = false, .children = {}}), HasSubstr("level 0"));
  EXPECT_THAT(refusal({.level = 4, .has_parent = false, .children = {}}), HasSubstr("level 4"));
  EXPECT_THAT(refusal({.level = 2, .has_parent = false, .children = {}}),
              HasSubstr("ranks below each"));
  EXPECT_THAT(refusal({.level = 1, .has_parent = true, .children = {}}),
              HasSubstr("ranks below each"));
  EXPECT_THAT(refusal({.level = 2, .has_parent = false, .children = {0b1111, 0}}),
              HasSubstr("without ranks"));
  EXPECT_THAT(refusal({.level = 2, .has_parent = false, .children = {0b11111}}),
              HasSubstr("session of 4 has not"));
  EXPECT_THAT(refusal({.level = 2, .has_parent = false, .children = {0b0111, 0b1100}}),
              HasSubstr("below two children"));
  EXPECT_THAT(refusal({.level = 1, .has_parent = true, .children = {0b11}}), HasSubstr("one rank"));
  EXPECT_THAT(refusal({.level = 2, .has_parent = false, .children = {0b0011}}),
              HasSubstr("without a parent"));
}

TEST(Tree, BindsWhoIsThere) {
  Switch machine;
  ASSERT_TRUE(
      machine.open(config_of(4, {.level = 1, .has_parent = true, .children = {1, 2}})).ok());
  EXPECT_TRUE(machine.bind(session, Rank(1), Port(1)).ok());
  EXPECT_TRUE(machine.bind_parent(session, Port(9)).ok());
  EXPECT_THAT(machine.bind(session, Rank(2), Port(2)).error().message, HasSubstr("not below"));
  Switch root;
  ASSERT_TRUE(root.open(config_of(4, {})).ok());
  EXPECT_THAT(root.bind_parent(session, Port(9)).error().message, HasSubstr("without a parent"));
  EXPECT_THAT(root.bind_parent(SessionId(9), Port(9)).error().message, HasSubstr("no session 9"));
}

wire::CommDescriptor all_reduce(ReduceOp op, DType dtype) {
  wire::DescriptorSpec spec;
  spec.kind = OpKind::all_reduce;
  spec.reduce_op = op;
  spec.dtype = dtype;
  spec.ranks = 4;
  spec.unit_elements = fragment_bytes / size_of(dtype);
  spec.fragment_bytes = fragment_bytes;
  return *wire::make_descriptor(spec);
}

TEST(Tree, RefusesHalvesWhosePartialsAreTooLong) {
  Switch machine;
  const TreePlace leaf{.level = 1, .has_parent = true, .children = {1, 2}};
  ASSERT_TRUE(machine.open(config_of(4, leaf, fragment_bytes)).ok());
  EXPECT_TRUE(machine.define(session, all_reduce(ReduceOp::sum, DType::float32)).ok());
  EXPECT_THAT(machine.define(session, all_reduce(ReduceOp::sum, DType::bfloat16)).error().message,
              HasSubstr("half as long"));
  Switch alone;
  ASSERT_TRUE(alone.open(config_of(4, {}, fragment_bytes)).ok());
  EXPECT_TRUE(alone.define(session, all_reduce(ReduceOp::sum, DType::bfloat16)).ok());
}

/// Two switches with two ranks each below a third; ports 0 to 3 are ranks, 10 and 11 the lower
/// switches, 12 the root.
class TwoAndTwo {
 public:
  explicit TwoAndTwo(const wire::CommDescriptor& descriptor) : descriptor_(descriptor) {
    open(left_, {.level = 1, .has_parent = true, .children = {1, 2}});
    open(right_, {.level = 1, .has_parent = true, .children = {4, 8}});
    open(root_, {.level = 2, .has_parent = false, .children = {3, 12}});
    for (std::uint16_t r = 0; r < 4; ++r) {
      EXPECT_TRUE((r < 2 ? left_ : right_).bind(session, Rank(r), Port(r)).ok());
    }
    EXPECT_TRUE(left_.bind_parent(session, Port(12)).ok());
    EXPECT_TRUE(right_.bind_parent(session, Port(12)).ok());
    EXPECT_TRUE(root_.bind(session, Rank(0), Port(10)).ok());
    EXPECT_TRUE(root_.bind(session, Rank(3), Port(11)).ok());
  }

  /// The first element of what rank 3 gets when rank r contributes values[r] in every element.
  std::uint16_t reduce(const std::array<std::uint16_t, 4>& values) {
    for (std::uint16_t r = 0; r < 4; ++r) {
      wire::Header header;
      header.session = session;
      header.epoch = Epoch(1);
      header.rank = Rank(r);
      header.kind = wire::Kind::contribution;
      header.descriptor = wire::hash(descriptor_);
      std::vector<std::byte> packet(wire::header_bytes + fragment_bytes);
      for (std::size_t i = wire::header_bytes; i < packet.size(); i += 2) {
        std::memcpy(packet.data() + i, &values[r], 2);
      }
      wire::serialize(header, std::span(packet).subspan(wire::header_bytes), wire::keys_of(secret),
                      std::span(packet).first<wire::header_bytes>());
      EXPECT_EQ((r < 2 ? left_ : right_).receive(Port(r), {packet, {}}), Drop::none);
    }
    pump(left_, Port(10));
    pump(right_, Port(11));
    pump(root_, Port(12));
    pump(left_, Port(10));
    pump(right_, Port(11));
    return result_;
  }

 private:
  void open(Switch& machine, TreePlace place) {
    ASSERT_TRUE(machine.open(config_of(4, std::move(place))).ok());
    ASSERT_TRUE(machine.define(session, descriptor_).ok());
  }

  void pump(Switch& machine, Port self) {
    Transmit out;
    while (machine.poll_transmit(out)) {
      std::vector<std::byte> packet(out.header.begin(), out.header.end());
      packet.insert(packet.end(), out.payload.begin(), out.payload.end());
      for (const Port port : out.ports) {
        if (port == Port(3)) std::memcpy(&result_, packet.data() + wire::header_bytes, 2);
        if (port.value < 4) continue;
        Switch& to = port == Port(10) ? left_ : port == Port(11) ? right_ : root_;
        EXPECT_EQ(to.receive(self, {packet, {}}), Drop::none);
      }
    }
  }

  wire::CommDescriptor descriptor_;
  Switch left_, right_, root_;
  std::uint16_t result_ = 0;
};

/// In bfloat16 256 + 1 is 256: rounded at each switch, the sum would be 256 and not 258.
TEST(Tree, HalvesAreRoundedOnceAtTheRoot) {
  constexpr std::uint16_t one = 0x3f80, zero = 0, two_five_six = 0x4380, two_five_eight = 0x4381;
  TwoAndTwo sum(all_reduce(ReduceOp::sum, DType::bfloat16));
  EXPECT_EQ(sum.reduce({two_five_six, one, one, zero}), two_five_eight);
  // 258 / 4 = 64.5.
  TwoAndTwo avg(all_reduce(ReduceOp::avg, DType::bfloat16));
  EXPECT_EQ(avg.reduce({two_five_six, one, one, zero}), 0x4281);
  TwoAndTwo most(all_reduce(ReduceOp::max, DType::bfloat16));
  EXPECT_EQ(most.reduce({one, zero, two_five_six, one}), two_five_six);
}

}  // namespace
}  // namespace cais::switching
