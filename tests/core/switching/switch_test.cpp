// The switch's management interface, and what it owes to whoever feeds and drains it. What the
// protocol says of packets stands in tests/scenarios.
#include "core/switching/switch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/wire/some_keys.hpp"

namespace cais::switching {
namespace {

using testing::HasSubstr;

constexpr SessionId session{3};
const wire::Keys keys = wire::keys_of(11);

SessionConfig config_of(std::uint16_t ranks, std::uint32_t window = 4) {
  return {session, Epoch(1), ranks, 1, 1, window, 64, keys};
}

wire::CommDescriptor all_reduce(std::uint16_t ranks, std::uint64_t elements = 1024) {
  wire::DescriptorSpec spec;
  spec.kind = OpKind::all_reduce;
  spec.reduce_op = ReduceOp::sum;
  spec.dtype = DType::int32;
  spec.ranks = ranks;
  spec.unit_elements = elements;
  spec.fragment_bytes = 64;
  return *wire::make_descriptor(spec);
}

std::vector<std::byte> contribution(const wire::CommDescriptor& descriptor, std::uint16_t rank,
                                    std::uint32_t seq) {
  wire::Header header;
  header.session = session;
  header.epoch = Epoch(1);
  header.rank = Rank(rank);
  header.seq = Seq(seq);
  header.kind = wire::Kind::contribution;
  header.descriptor = wire::hash(descriptor);
  header.offset = seq * descriptor.fragment_bytes / wire::offset_step;
  std::vector<std::byte> packet(wire::header_bytes + descriptor.fragment_bytes, std::byte{1});
  wire::serialize(header, std::span(packet).subspan(wire::header_bytes), keys,
                  std::span(packet).first<wire::header_bytes>());
  return packet;
}

void open(Switch& machine, const SessionConfig& config, const wire::CommDescriptor& descriptor) {
  ASSERT_TRUE(machine.open(config).ok());
  ASSERT_TRUE(machine.define(config.session, descriptor).ok());
  for (std::uint16_t rank = 0; rank < config.ranks; ++rank) {
    ASSERT_TRUE(machine.bind(config.session, Rank(rank), Port(rank)).ok());
  }
}

/// Header and payload of all that the switch has to send.
std::vector<std::vector<std::byte>> sent_by(Switch& machine) {
  std::vector<std::vector<std::byte>> all;
  Transmit out;
  while (machine.poll_transmit(out)) {
    auto& packet = all.emplace_back(out.header.begin(), out.header.end());
    packet.insert(packet.end(), out.payload.begin(), out.payload.end());
  }
  return all;
}

TEST(Management, RefusesWhatCannotBe) {
  const auto message = [](SessionConfig config) {
    Switch machine;
    const auto opened = machine.open(config);
    return opened.ok() ? "opened" : opened.error().message;
  };
  SessionConfig config = config_of(2);
  config.session = SessionId(0);
  EXPECT_THAT(message(config), HasSubstr("session 0"));
  EXPECT_THAT(message(config_of(0)), HasSubstr("1 to 64 ranks, not 0"));
  EXPECT_THAT(message(config_of(65)), HasSubstr("not 65"));
  EXPECT_THAT(message(config_of(2, 3)), HasSubstr("power of two"));
  EXPECT_THAT(message(config_of(2, 2 * window_fragments_max)), HasSubstr("power of two"));
  config = config_of(2);
  config.lanes_served = 2;
  EXPECT_THAT(message(config), HasSubstr("lanes_served"));
  config = config_of(2);
  config.payload_bytes_max = payload_bytes_max + 1;
  EXPECT_THAT(message(config), HasSubstr("payload_bytes_max"));
}

TEST(Management, ASessionIsOpenedOnceAndFoundUntilItIsClosed) {
  Switch machine;
  ASSERT_TRUE(machine.open(config_of(2)).ok());
  EXPECT_THAT(machine.open(config_of(2)).error().message, HasSubstr("open already"));
  EXPECT_THAT(machine.bind(session, Rank(2), Port(0)).error().message, HasSubstr("ranks 0 to 1"));
  EXPECT_THAT(machine.define(SessionId(4), all_reduce(2)).error().message,
              HasSubstr("no session 4"));
  EXPECT_THAT(machine.define(session, all_reduce(3)).error().message, HasSubstr("does not fit"));
  machine.close(session);
  machine.close(session);
  EXPECT_FALSE(machine.bind(session, Rank(0), Port(0)).ok());
  EXPECT_TRUE(machine.open(config_of(2)).ok());
}

TEST(Management, SessionsAreBounded) {
  Switch machine;
  SessionConfig config = config_of(1, 1);
  for (std::uint32_t id = 1; id <= sessions_max; ++id) {
    config.session = SessionId(id);
    ASSERT_TRUE(machine.open(config).ok());
  }
  config.session = SessionId(sessions_max + 1);
  EXPECT_EQ(machine.open(config).error().code, ErrorCode::resource_exhausted);
}

TEST(Switch, KeepsABufferUntilTheSumIsTaken) {
  BufferPool pool(2, 128);
  Switch machine;
  const auto descriptor = all_reduce(2);
  open(machine, config_of(2), descriptor);
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    const auto packet = contribution(descriptor, rank, 0);
    Packet owned{{}, pool.acquire()};
    std::memcpy(owned.owner.data(), packet.data(), packet.size());
    owned.bytes = {owned.owner.data(), packet.size()};
    EXPECT_EQ(machine.receive(Port(rank), std::move(owned)), Drop::none);
    EXPECT_EQ(pool.free_count(), rank == 0 ? 1u : 2u);
  }
  EXPECT_EQ(sent_by(machine).size(), 1u);
}

TEST(Switch, ResultsAreInOnePiece) {
  Switch machine;
  const auto descriptor = all_reduce(1);
  open(machine, config_of(1), descriptor);
  EXPECT_EQ(machine.receive(Port(0), {contribution(descriptor, 0, 0), {}}), Drop::none);
  Transmit out;
  ASSERT_TRUE(machine.poll_transmit(out));
  EXPECT_EQ(out.header.data() + out.header.size(), out.payload.data());
}

TEST(Switch, WhatASessionHeldComesBackWhenItIsClosed) {
  BufferPool pool(1, 128);
  Switch machine;
  const auto descriptor = all_reduce(2);
  open(machine, config_of(2), descriptor);
  const auto packet = contribution(descriptor, 0, 0);
  Packet owned{{}, pool.acquire()};
  std::memcpy(owned.owner.data(), packet.data(), packet.size());
  owned.bytes = {owned.owner.data(), packet.size()};
  EXPECT_EQ(machine.receive(Port(0), std::move(owned)), Drop::none);
  EXPECT_EQ(machine.slots_in_use(), 1u);
  EXPECT_EQ(machine.receive(Port(1), {contribution(descriptor, 1, 0), {}}), Drop::none);
  EXPECT_EQ(machine.receive(Port(1), {contribution(descriptor, 1, 1), {}}), Drop::none);
  machine.close(session);
  EXPECT_EQ(machine.slots_in_use(), 0u);
  EXPECT_EQ(pool.free_count(), 1u);
  EXPECT_TRUE(sent_by(machine).empty());
}

TEST(Switch, ConsecutiveDonesShareAPacket) {
  wire::DescriptorSpec spec;
  spec.kind = OpKind::broadcast;
  spec.dtype = DType::int32;
  spec.ranks = 1;
  spec.unit_elements = 64;
  spec.fragment_bytes = 64;
  const auto descriptor = *wire::make_descriptor(spec);
  Switch machine;
  open(machine, config_of(1), descriptor);
  for (std::uint32_t seq = 0; seq < 4; ++seq) {
    EXPECT_EQ(machine.receive(Port(0), {contribution(descriptor, 0, seq), {}}), Drop::none);
  }
  const auto sent = sent_by(machine);
  ASSERT_EQ(sent.size(), 1u);
  wire::Header header;
  ASSERT_EQ(wire::parse(sent[0], header), wire::ParseError::none);
  EXPECT_EQ(header.kind, wire::Kind::done);
  EXPECT_EQ(header.seq, Seq(0));
  EXPECT_EQ(header.chunk, 4u);
}

TEST(Switch, WhatNobodyPollsIsBounded) {
  Switch machine;
  const auto descriptor = all_reduce(1);
  open(machine, config_of(1), descriptor);
  EXPECT_EQ(machine.receive(Port(0), {contribution(descriptor, 0, 0), {}}), Drop::none);
  const auto repeat = contribution(descriptor, 0, 0);
  for (std::size_t i = 0; i < transmits_max + 10; ++i) {
    EXPECT_EQ(machine.receive(Port(0), {repeat, {}}), Drop::none);
  }
  EXPECT_EQ(machine.counters().transmits_lost, 11u);
  EXPECT_EQ(sent_by(machine).size(), transmits_max);
}

TEST(Switch, ACopyGoesOnByItself) {
  Switch machine;
  const auto descriptor = all_reduce(2);
  open(machine, config_of(2), descriptor);
  EXPECT_EQ(machine.receive(Port(0), {contribution(descriptor, 0, 0), {}}), Drop::none);
  Switch copy = machine;
  EXPECT_EQ(copy.receive(Port(1), {contribution(descriptor, 1, 0), {}}), Drop::none);
  EXPECT_EQ(copy.slots_in_use(), 0u);
  EXPECT_EQ(machine.slots_in_use(), 1u);
  EXPECT_TRUE(sent_by(machine).empty());
  EXPECT_EQ(machine.receive(Port(1), {contribution(descriptor, 1, 0), {}}), Drop::none);
  EXPECT_EQ(sent_by(machine), sent_by(copy));
}

}  // namespace
}  // namespace cais::switching
