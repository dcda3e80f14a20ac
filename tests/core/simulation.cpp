#include "tests/core/simulation.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "wire/digest.hpp"

namespace cais::simulation {
namespace {

constexpr std::size_t pool_buffers = 256;

std::uint64_t seed_of(std::uint16_t session) { return 0x5eed0000u + session; }

std::vector<std::byte> joined(std::span<const std::byte> a, std::span<const std::byte> b,
                              std::span<const std::byte> c = {}) {
  std::vector<std::byte> bytes(a.begin(), a.end());
  bytes.insert(bytes.end(), b.begin(), b.end());
  bytes.insert(bytes.end(), c.begin(), c.end());
  return bytes;
}

}  // namespace

Simulation::Simulation(const Setup& setup)
    : setup_(setup),
      rng_(setup.seed),
      pool_(pool_buffers, setup.payload_bytes_max + wire::header_bytes),
      events_(std::size_t{setup.sessions} * setup.ranks) {
  for (std::size_t i = 0; i < setup.switches; ++i) {
    switches_.push_back(std::make_unique<switching::Switch>());
  }
  for (std::uint16_t session = 0; session < setup.sessions; ++session) {
    const SessionId id(session + 1u);
    for (std::uint8_t i = 0; i < setup.switches; ++i) {
      std::uint64_t served = 0;
      for (std::uint8_t l = i; l < setup.lanes; l = static_cast<std::uint8_t>(l + setup.switches)) {
        served |= 1ull << l;
      }
      const auto opened = switches_[i]->open({id, Epoch(1), setup.ranks, setup.lanes, served,
                                              setup.window_fragments, setup.payload_bytes_max,
                                              seed_of(session), setup.first_seq});
      CAIS_CHECK(opened.ok());
      for (std::uint16_t rank = 0; rank < setup.ranks; ++rank) {
        CAIS_CHECK(
            switches_[i]->bind(id, Rank(rank), switching::Port(endpoint(session, rank))).ok());
      }
    }
    for (std::uint16_t rank = 0; rank < setup.ranks; ++rank) {
      agent::Config config{id,
                           Epoch(1),
                           Rank(rank),
                           setup.ranks,
                           setup.lanes,
                           setup.window_fragments,
                           seed_of(session),
                           setup.first_seq};
      agents_.push_back(std::make_unique<agent::Agent>(config));
    }
  }
}

agent::Agent& Simulation::agent(std::uint16_t session, std::uint16_t rank) {
  return *agents_[endpoint(session, rank)];
}

const std::vector<agent::Event>& Simulation::events(std::uint16_t session, std::uint16_t rank) {
  return events_[endpoint(session, rank)];
}

void Simulation::define(std::uint16_t session, const wire::CommDescriptor& descriptor) {
  for (const auto& each : switches_) {
    CAIS_CHECK(each->define(SessionId(session + 1u), descriptor).ok());
  }
}

void Simulation::submit(std::uint16_t session, std::uint16_t rank, const agent::Submit& op) {
  agent(session, rank).submit(op);
  drain_agent(endpoint(session, rank));
}

void Simulation::send(std::uint32_t to, switching::Port from, std::vector<std::byte> bytes) {
  const Faults& faults = setup_.faults;
  const bool faulty = now_ < faults.until;
  if (faulty && rng_.chance(faults.loss)) return;
  const int copies = faulty && rng_.chance(faults.duplication) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    const auto spread = static_cast<std::uint64_t>((faults.delay_max - faults.delay_min).count());
    const Duration delay =
        faults.delay_min + Duration(static_cast<std::int64_t>(rng_.below(spread + 1)));
    flights_.push({now_ + delay, order_++, to, from, bytes});
  }
}

void Simulation::deliver(const Flight& flight) {
  const std::uint64_t stamp[] = {static_cast<std::uint64_t>(now_.time_since_epoch().count()),
                                 flight.to, wire::digest(flight.bytes), trace_};
  trace_ = wire::digest(std::as_bytes(std::span(stamp)));
  if ((flight.to & to_switch) == 0) {
    agents_[flight.to]->receive(now_, flight.bytes);
    drain_agent(flight.to);
    return;
  }
  const std::size_t index = flight.to & ~to_switch;
  // Half of the packets come in a buffer that may be kept, as long as the pool has one.
  Packet packet{flight.bytes, {}};
  if (rng_.chance(0.5)) packet.owner = pool_.acquire();
  if (packet.owner) {
    std::memcpy(packet.owner.data(), flight.bytes.data(), flight.bytes.size());
    packet.bytes = {packet.owner.data(), flight.bytes.size()};
  }
  switches_[index]->receive(flight.from, std::move(packet));
  // Sometimes several packets are taken before any is sent, as in a batch from the kernel.
  if (rng_.chance(0.5)) drain_switch(index);
}

void Simulation::drain_agent(std::uint32_t index) {
  agent::Transmit out;
  while (agents_[index]->poll_transmit(now_, out)) {
    send(to_switch | out.lane.value % setup_.switches, switching::Port(index),
         joined(out.header, out.payload, out.padding));
  }
  agent::Event event;
  while (agents_[index]->poll_event(event)) events_[index].push_back(event);
}

void Simulation::drain_switch(std::size_t index) {
  switching::Transmit out;
  while (switches_[index]->poll_transmit(out)) {
    for (const switching::Port port : out.ports) {
      send(port.value, switching::Port(0), joined(out.header, out.payload));
    }
  }
  switching::Event event;
  while (switches_[index]->poll_event(event)) switch_events_.push_back(event);
}

void Simulation::wake() {
  for (std::uint32_t i = 0; i < agents_.size(); ++i) {
    if (agents_[i]->deadline() > now_) continue;
    agents_[i]->timeout(now_);
    drain_agent(i);
  }
}

bool Simulation::idle() const {
  return std::all_of(agents_.begin(), agents_.end(), [](const auto& each) { return each->idle(); });
}

bool Simulation::run(Duration limit) {
  const Instant end = now_ + limit;
  while (!idle()) {
    Instant next = flights_.empty() ? never : flights_.top().arrives;
    for (const auto& each : agents_) next = std::min(next, each->deadline());
    if (next > end) return false;
    if (next > now_) {
      for (std::size_t i = 0; i < switches_.size(); ++i) drain_switch(i);
      next = std::min(next, flights_.empty() ? never : flights_.top().arrives);
    }
    now_ = std::max(now_, next);
    if (!flights_.empty() && flights_.top().arrives <= now_) {
      const Flight flight = flights_.top();
      flights_.pop();
      deliver(flight);
    }
    wake();
  }
  return true;
}

}  // namespace cais::simulation
