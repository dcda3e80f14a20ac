// tests/core/simulation.hpp — agents and switches in a network that loses, doubles, reorders and
// delays packets, all from one seed (I9). Virtual time; the machines are the ones that ship.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <vector>

#include "base/buffer.hpp"
#include "base/rng.hpp"
#include "base/time.hpp"
#include "core/agent/agent.hpp"
#include "core/switching/switch.hpp"

namespace cais::simulation {

struct Faults {
  double loss = 0;
  double duplication = 0;
  Duration delay_min = std::chrono::microseconds(10);
  Duration delay_max = std::chrono::microseconds(10);  // packets overtake each other within these
  Instant until = never;                               // after that nothing is lost or doubled
};

struct Setup {
  std::uint64_t seed = 1;
  std::uint16_t ranks = 2;
  std::uint8_t lanes = 1;
  std::uint8_t switches = 1;  // switch i serves the lanes l with l mod switches = i
  std::uint16_t sessions = 1;
  std::uint32_t window_fragments = 16;
  std::uint32_t payload_bytes_max = 1024;
  Seq first_seq{};
  Faults faults;
};

class Simulation {
 public:
  explicit Simulation(const Setup& setup);

  agent::Agent& agent(std::uint16_t session, std::uint16_t rank);
  switching::Switch& switch_at(std::size_t index) { return *switches_[index]; }
  void define(std::uint16_t session, const wire::CommDescriptor& descriptor);
  void submit(std::uint16_t session, std::uint16_t rank, const agent::Submit& op);

  /// Lets the machines work until every agent is idle; false when `limit` of virtual time passes
  /// first. Events are kept for the caller.
  bool run(Duration limit);

  Instant now() const { return now_; }
  const std::vector<agent::Event>& events(std::uint16_t session, std::uint16_t rank);
  const std::vector<switching::Event>& switch_events() const { return switch_events_; }
  /// A number that tells two runs apart: every packet, in order, with its time.
  std::uint64_t trace() const { return trace_; }

 private:
  static constexpr std::uint32_t to_switch = 1u << 31;
  struct Flight {
    Instant arrives;
    std::uint64_t order;
    std::uint32_t to;  // endpoint of an agent, or to_switch | index of a switch
    switching::Port from;
    std::vector<std::byte> bytes;
    bool operator>(const Flight& other) const {
      return std::tie(arrives, order) > std::tie(other.arrives, other.order);
    }
  };
  std::uint32_t endpoint(std::uint16_t session, std::uint16_t rank) const {
    return std::uint32_t{session} * setup_.ranks + rank;
  }
  void send(std::uint32_t to, switching::Port from, std::vector<std::byte> bytes);
  void deliver(const Flight& flight);
  void drain_agent(std::uint32_t index);
  void drain_switch(std::size_t index);
  void wake();
  bool idle() const;

  Setup setup_;
  Rng rng_;
  BufferPool pool_;
  Instant now_{};
  std::uint64_t order_ = 0;
  std::uint64_t trace_ = 0;
  std::vector<std::unique_ptr<agent::Agent>> agents_;  // by endpoint
  std::vector<std::unique_ptr<switching::Switch>> switches_;
  std::priority_queue<Flight, std::vector<Flight>, std::greater<>> flights_;
  std::vector<std::vector<agent::Event>> events_;
  std::vector<switching::Event> switch_events_;
};

}  // namespace cais::simulation
