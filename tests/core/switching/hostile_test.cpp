// Packets from those who mean harm. Without the session's keys they change nothing and get no
// answer (P13). A rank of the session can spoil its own session, but no other one, and neither
// crashes the switch nor makes it grow.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/rng.hpp"
#include "core/agent/agent.hpp"
#include "core/switching/switch.hpp"
#include "sim/workload.hpp"
#include "tests/wire/some_keys.hpp"

namespace cais::sim {
namespace {

constexpr std::uint16_t ranks = 3;
constexpr std::uint8_t lanes = 2;
constexpr std::uint32_t window = 4;
constexpr std::uint32_t payload_bytes_max = 64;

const wire::Keys& keys_of(SessionId session) {
  static const std::array keys{wire::keys_of(1), wire::keys_of(2)};
  return keys.at(session.value - 1);
}

switching::SessionConfig config_of(SessionId session) {
  return {session, Epoch(1), ranks, lanes, 3, window, payload_bytes_max, keys_of(session)};
}

/// One session's agents, fed by hand through a switch that others share.
class Group {
 public:
  Group(switching::Switch& machine, SessionId session, std::uint32_t port)
      : machine_(machine), port_(port) {
    EXPECT_TRUE(machine.open(config_of(session)).ok());
    for (std::uint16_t rank = 0; rank < ranks; ++rank) {
      EXPECT_TRUE(machine.bind(session, Rank(rank), switching::Port(port + rank)).ok());
      agents_.emplace_back(
          agent::Config{session, Epoch(1), Rank(rank), ranks, lanes, window, keys_of(session)});
    }
  }
  void start(const Job& job) {
    for (std::uint16_t rank = 0; rank < ranks; ++rank) agents_[rank].submit(job.submits[rank]);
  }
  bool idle() const {
    return std::all_of(agents_.begin(), agents_.end(), [](const auto& a) { return a.idle(); });
  }
  /// The next packet of one of the agents; empty when none has any.
  std::pair<switching::Port, std::vector<std::byte>> next_packet(Rng& rng) {
    const std::size_t first = rng.below(ranks);
    for (std::size_t i = 0; i < ranks; ++i) {
      const std::size_t rank = (first + i) % ranks;
      agent::Transmit out;
      if (!agents_[rank].poll_transmit(now_, out)) continue;
      std::vector<std::byte> packet(out.header.begin(), out.header.end());
      packet.insert(packet.end(), out.payload.begin(), out.payload.end());
      packet.insert(packet.end(), out.padding.begin(), out.padding.end());
      return {switching::Port(port_ + static_cast<std::uint32_t>(rank)), packet};
    }
    return {};
  }
  bool take(switching::Port port, std::span<const std::byte> packet) {
    if (port.value < port_ || port.value >= port_ + ranks) return false;
    agents_[port.value - port_].receive(now_, packet);
    return true;
  }
  void wait() {
    now_ += std::chrono::seconds(1);
    for (agent::Agent& each : agents_) {
      if (each.deadline() <= now_) each.timeout(now_);
    }
  }

 private:
  switching::Switch& machine_;
  std::uint32_t port_;
  Instant now_{};
  std::vector<agent::Agent> agents_;
};

std::vector<Job> jobs_for(Rng& rng, switching::Switch& machine, SessionId session, Group& group) {
  const Shape shape{
      .ranks = ranks, .lanes = lanes, .payload_bytes_max = payload_bytes_max, .elements_max = 200};
  std::vector<Job> jobs;
  for (std::uint64_t op = 0; op < 6; ++op) {
    jobs.push_back(make_job(rng, random_spec(rng, shape), op, sim::Tree(shape.ranks)));
    EXPECT_TRUE(machine.define(session, jobs.back().descriptor).ok());
  }
  for (const Job& job : jobs) group.start(job);
  return jobs;
}

void expect_accounted(const switching::Counters& counters) {
  EXPECT_EQ(counters.received, std::accumulate(std::begin(counters.dropped),
                                               std::end(counters.dropped), counters.accepted));
}

std::size_t deliver_all(switching::Switch& machine, std::initializer_list<Group*> groups) {
  std::size_t bytes = 0;
  switching::Transmit out;
  while (machine.poll_transmit(out)) {
    std::vector<std::byte> packet(out.header.begin(), out.header.end());
    packet.insert(packet.end(), out.payload.begin(), out.payload.end());
    bytes += packet.size() * out.ports.size();
    for (const switching::Port port : out.ports) {
      for (Group* group : groups) group->take(port, packet);
    }
  }
  return bytes;
}

std::vector<std::byte> mutated(Rng& rng, std::vector<std::byte> packet) {
  const std::uint64_t changes = 1 + rng.below(3);
  for (std::uint64_t i = 0; i < changes && !packet.empty(); ++i) {
    switch (rng.below(3)) {
      case 0:
        packet[rng.below(packet.size())] ^= static_cast<std::byte>(1u << rng.below(8));
        break;
      case 1:
        packet.resize(rng.below(packet.size() + 1));
        break;
      default:
        packet.resize(packet.size() + rng.below(100), static_cast<std::byte>(rng.next()));
    }
  }
  return packet;
}

TEST(Hostile, AnOutsiderChangesNothingAndGetsNoAnswer) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    switching::Switch machine;
    Group group(machine, SessionId(1), 0);
    const std::vector<Job> jobs = jobs_for(rng, machine, SessionId(1), group);
    while (!group.idle()) {
      const auto [port, packet] = group.next_packet(rng);
      if (packet.empty()) {
        group.wait();
        continue;
      }
      for (int i = 0; i < 3; ++i) {
        const auto bad = mutated(rng, packet);
        if (bad == packet) continue;
        const switching::Port from(static_cast<std::uint32_t>(rng.below(ranks + 2)));
        EXPECT_NE(machine.receive(from, {bad, {}}), switching::Drop::none);
        EXPECT_EQ(deliver_all(machine, {}), 0u);
        group.take(port, bad);
      }
      EXPECT_EQ(machine.receive(port, {packet, {}}), switching::Drop::none);
      deliver_all(machine, {&group});
    }
    for (const Job& job : jobs) EXPECT_EQ(job.wrong_rank(), -1);
    expect_accounted(machine.counters());
  }
}

/// A packet that rank 2 of session 2 might forge: a right tag, and anything else.
std::vector<std::byte> forged(Rng& rng, const std::vector<Job>& jobs) {
  const Job& job = jobs[rng.below(jobs.size())];
  wire::Header header;
  header.session = SessionId(2);
  header.epoch = Epoch(1);
  header.rank = Rank(2);
  header.lane = Lane(static_cast<std::uint8_t>(rng.below(lanes)));
  header.kind = rng.chance(0.3) ? wire::Kind::want : wire::Kind::contribution;
  header.descriptor = wire::hash(job.descriptor);
  const std::uint32_t fragment =
      static_cast<std::uint32_t>(rng.below(job.plan.fragments() + 1)) % job.plan.fragments();
  header.seq = Seq(static_cast<std::uint32_t>(rng.chance(0.9) ? rng.below(64) : rng.next()));
  header.chunk =
      rng.chance(0.9) ? job.plan.chunk_of(fragment) : static_cast<std::uint32_t>(rng.next());
  header.offset =
      rng.chance(0.9)
          ? static_cast<std::uint32_t>(job.plan.extent(fragment).offset / wire::offset_step)
          : static_cast<std::uint32_t>(rng.next());
  std::size_t payload = header.kind == wire::Kind::want         ? wire::want_bytes
                        : job.plan.contributes_payload(Rank(2)) ? job.plan.fragment_bytes
                                                                : 0;
  if (rng.chance(0.1)) payload = rng.below(200);
  std::vector<std::byte> packet(wire::header_bytes + payload);
  for (std::byte& byte : packet) byte = static_cast<std::byte>(rng.next());
  wire::serialize(header, std::span(packet).subspan(wire::header_bytes), keys_of(SessionId(2)),
                  std::span(packet).first<wire::header_bytes>());
  return packet;
}

TEST(Hostile, ARankSpoilsNoOtherSession) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    BufferPool pool(64, 512);
    switching::Switch machine;
    Group good(machine, SessionId(1), 0);
    Group bad(machine, SessionId(2), 10);
    const std::vector<Job> jobs = jobs_for(rng, machine, SessionId(1), good);
    const std::vector<Job> spoiled = jobs_for(rng, machine, SessionId(2), bad);
    for (int turn = 0; turn < 4000 || !good.idle(); ++turn) {
      const auto [port, packet] = good.next_packet(rng);
      if (!packet.empty()) {
        EXPECT_EQ(machine.receive(port, {packet, {}}), switching::Drop::none);
      } else if (!good.idle()) {
        good.wait();
      }
      const auto [bad_port, bad_packet] = bad.next_packet(rng);
      if (!bad_packet.empty()) machine.receive(bad_port, {bad_packet, {}});
      const auto forgery = forged(rng, spoiled);
      Packet owned{forgery, rng.chance(0.5) ? pool.acquire() : BufferRef()};
      if (owned.owner) {
        std::memcpy(owned.owner.data(), forgery.data(), forgery.size());
        owned.bytes = {owned.owner.data(), forgery.size()};
      }
      machine.receive(switching::Port(12), std::move(owned));
      if (rng.chance(0.7)) deliver_all(machine, {&good, &bad});
    }
    for (const Job& job : jobs) EXPECT_EQ(job.wrong_rank(), -1);
    expect_accounted(machine.counters());
    EXPECT_LE(machine.slots_in_use(), 2u * window * lanes);
    machine.close(SessionId(2));
    EXPECT_EQ(machine.slots_in_use(), 0u);
    machine.close(SessionId(1));
    EXPECT_EQ(pool.free_count(), pool.capacity());
  }
}

}  // namespace
}  // namespace cais::sim
