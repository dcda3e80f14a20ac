// What the agent owes to whoever feeds and drains it. What the protocol says stands in
// tests/scenarios.
#include "core/agent/agent.hpp"

#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "sim/workload.hpp"
#include "tests/wire/some_keys.hpp"

namespace cais::agent {
namespace {

constexpr SessionId session{3};
const wire::Keys keys = wire::keys_of(11);

Config config_of(std::uint16_t ranks, std::uint8_t lanes, std::uint32_t window) {
  return {session, Epoch(1), Rank(0), ranks, lanes, window, keys};
}

sim::Job job_of(OpKind kind, std::uint64_t elements, std::uint16_t ranks, std::uint8_t lanes) {
  Rng rng(1);
  wire::DescriptorSpec spec;
  spec.kind = kind;
  spec.reduce_op = wire::reduces(kind) ? ReduceOp::sum : ReduceOp::none;
  spec.dtype = DType::int32;
  spec.ranks = ranks;
  spec.unit_elements = elements;
  spec.fragment_bytes = 64;
  spec.lanes = lanes;
  return sim::make_job(rng, spec, 5, sim::Tree(spec.ranks));
}

std::vector<Transmit> poll_all(Agent& agent) {
  std::vector<Transmit> all;
  Transmit out;
  while (agent.poll_transmit(Instant(), out)) all.push_back(out);
  return all;
}

wire::Header header_of(const Transmit& out) {
  wire::Header header;
  EXPECT_EQ(wire::parse(out.header, header), wire::ParseError::none);
  return header;
}

TEST(Agent, SendsViewsOfTheTensorAndPadsTheLast) {
  Agent agent(config_of(2, 1, 8));
  const auto job = job_of(OpKind::all_reduce, 18, 2, 1);  // 72 bytes: 48 and 24
  agent.submit(job.submits[0]);
  const auto sent = poll_all(agent);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].payload.data(), job.submits[0].send);
  EXPECT_EQ(sent[0].payload.size(), 48u);
  EXPECT_TRUE(sent[0].padding.empty());
  EXPECT_EQ(sent[1].payload.data(), job.submits[0].send + 48);
  EXPECT_EQ(sent[1].payload.size(), 24u);
  ASSERT_EQ(sent[1].padding.size(), 24u);
  for (const std::byte byte : sent[1].padding) EXPECT_EQ(byte, std::byte{0});
}

TEST(Agent, LanesTakeTurnsInRuns) {
  Agent agent(config_of(2, 2, 256));
  const auto job = job_of(OpKind::all_reduce, 16 * 256, 2, 2);  // 256 fragments, 128 a lane
  agent.submit(job.submits[0]);
  const auto sent = poll_all(agent);
  ASSERT_EQ(sent.size(), 64u);  // the congestion window begins with 32 a lane
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(sent[i].lane, Lane(i < 32 ? 0 : 1));
    EXPECT_EQ(header_of(sent[i]).seq, Seq(static_cast<std::uint32_t>(i % 32)));
  }
}

TEST(Agent, AnAllGatherSendsAsMuchAsItMayReceive) {
  Agent agent(config_of(5, 1, 256));
  const auto job = job_of(OpKind::all_gather, 16 * 64, 5, 1);  // 64 fragments
  agent.submit(job.submits[0]);
  EXPECT_EQ(poll_all(agent).size(), 8u);  // each is owed 4 payloads; the window begins with 32
}

TEST(Agent, SmallOpsTakeTheLanesInTurn) {
  Agent agent(config_of(2, 3, 8));
  const auto job = job_of(OpKind::all_reduce, 4, 2, 3);
  ASSERT_EQ(job.plan.lanes, 1);
  for (int i = 0; i < 6; ++i) agent.submit(job.submits[0]);
  std::vector<int> per_lane(3);
  for (const Transmit& out : poll_all(agent)) ++per_lane[out.lane.value];
  EXPECT_EQ(per_lane, (std::vector{2, 2, 2}));
}

TEST(Agent, AnOpOnAllLanesBeginsWithTheFirst) {
  Agent agent(config_of(2, 2, 8));
  const auto small = job_of(OpKind::all_reduce, 4, 2, 2);
  const auto scatter = job_of(OpKind::reduce_scatter, 2048, 2, 2);
  ASSERT_EQ(small.plan.lanes, 1);
  ASSERT_EQ(scatter.plan.lanes, 2);
  agent.submit(small.submits[0]);
  agent.submit(scatter.submits[0]);
  const std::byte* const second_unit = scatter.submits[0].send + scatter.plan.unit_bytes;
  for (const Transmit& out : poll_all(agent)) {
    if (header_of(out).descriptor != scatter.submits[0].descriptor) continue;
    EXPECT_EQ(out.lane, Lane(out.payload.data() < second_unit ? 0 : 1));
  }
}

TEST(Agent, WaitsForNothingWhenIdle) {
  Agent agent(config_of(2, 1, 8));
  EXPECT_TRUE(agent.idle());
  EXPECT_EQ(agent.deadline(), never);
  const auto job = job_of(OpKind::barrier, 0, 2, 1);
  agent.submit(job.submits[0]);
  EXPECT_FALSE(agent.idle());
  EXPECT_EQ(agent.deadline(), never);  // nothing has been sent yet
  EXPECT_EQ(poll_all(agent).size(), 1u);
  EXPECT_EQ(agent.deadline(), Instant(std::chrono::milliseconds(20)));
}

TEST(Agent, ACopyGoesOnByItself) {
  Agent agent(config_of(2, 1, 8));
  const auto job = job_of(OpKind::all_reduce, 18, 2, 1);
  agent.submit(job.submits[0]);
  Agent copy = agent;
  EXPECT_EQ(poll_all(agent).size(), 2u);
  EXPECT_EQ(poll_all(agent).size(), 0u);
  EXPECT_EQ(poll_all(copy).size(), 2u);
}

/// Whatever a switch may send, right tag and all, the agent stands, and writes nowhere else.
TEST(Agent, StandsWhatASwitchMakesUp) {
  std::uint64_t accepted = 0;
  for (std::uint64_t trial = 1; trial <= 200; ++trial) {
    Rng rng(trial);
    Agent agent(config_of(3, 2, 4));
    static constexpr OpKind kinds[] = {OpKind::all_reduce, OpKind::all_gather, OpKind::broadcast,
                                       OpKind::reduce_scatter, OpKind::all_to_all};
    const auto job = job_of(kinds[rng.below(5)], 1 + rng.below(200), 3, 2);
    for (int i = 0; i < 3; ++i) agent.submit(job.submits[0]);
    Instant now{};
    for (int i = 0; i < 300; ++i) {
      now += std::chrono::milliseconds(rng.below(30));
      if (agent.deadline() <= now) agent.timeout(now);
      Transmit out;
      while (agent.poll_transmit(now, out)) {
      }
      wire::Header header;
      header.session = session;
      header.epoch = Epoch(1);
      header.rank = Rank(static_cast<std::uint16_t>(rng.below(4)));
      header.lane = Lane(static_cast<std::uint8_t>(rng.below(3)));
      header.seq = Seq(static_cast<std::uint32_t>(rng.chance(0.9) ? rng.below(60) : rng.next()));
      header.kind = static_cast<wire::Kind>(1 + rng.below(rng.chance(0.02) ? 6 : 5));
      header.flags = static_cast<std::uint8_t>(rng.below(4));
      header.descriptor = rng.chance(0.95) ? job.submits[0].descriptor : DescriptorHash(1);
      header.chunk = static_cast<std::uint32_t>(rng.chance(0.9) ? rng.below(8) : rng.next());
      const std::size_t bytes = header.kind != wire::Kind::result ? 0
                                : rng.chance(0.9)                 ? job.plan.fragment_bytes
                                                                  : rng.below(200);
      std::vector<std::byte> packet(wire::header_bytes + bytes);
      wire::serialize(header, std::span(packet).subspan(wire::header_bytes), keys,
                      std::span(packet).first<wire::header_bytes>());
      agent.receive(now, packet);
      Event event;
      while (agent.poll_event(event)) {
      }
    }
    const Counters& counters = agent.counters();
    EXPECT_EQ(counters.received, counters.accepted + counters.dropped_malformed +
                                     counters.dropped_tag + counters.dropped_foreign +
                                     counters.dropped_stale);
    accepted += counters.accepted;
  }
  EXPECT_GT(accepted, 500u);
}

}  // namespace
}  // namespace cais::agent
