// sim/group.hpp — one life of a session in the simulator: its collectives, its oracle, and where
// each of its ranks has come.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/agent/agent.hpp"
#include "core/switching/switch.hpp"
#include "sim/oracle.hpp"
#include "sim/scenario.hpp"

namespace cais::sim {

struct Group {
  /// Life number `life` of session number `index`; what it is like follows from the scenario.
  Group(const Scenario& scenario, std::uint64_t index, std::uint64_t life);

  SessionId id() const { return config.session; }
  /// Whether this life of the session has that epoch, at some time.
  bool lives_in(Epoch epoch) const;
  /// Of all ranks.
  const wire::Keys& keys(Epoch epoch);
  /// Of a packet's seq in its epoch.
  Round round_of(const wire::Header& header) const;
  std::uint64_t lanes_served(std::size_t of_switch) const;
  /// The switch has nothing of the session in service any more.
  void withdraw(std::size_t of_switch) { services.erase(of_switch); }
  agent::Config agent_config(Rank rank) const;
  /// Whether a rank has done all that it has begun, and has more to call.
  bool someone_thinks() const;

  /// Of a rank, as its runtime keeps it.
  struct Member {
    std::size_t called = 0;       // collectives
    std::size_t submitted = 0;    // of those
    std::vector<bool> described;  // by op: the switches have its descriptor (P14)
    bool ended = false;    // refused or failed, by the switch or by the management, or crashed
    bool crashed = false;  // without a word
  };
  /// What a switch has in service, and in which epoch.
  struct Service {
    Epoch epoch;
    std::uint64_t lanes;
  };

  /// What the session is at a switch that has this place in its tree.
  switching::SessionConfig config_at(std::size_t of_switch, std::size_t node) const;

  switching::SessionConfig config;  // but for what differs between switches
  wire::Tags tags;
  wire::Secret secret;  // of the session
  std::map<Epoch, wire::Keys> keys_by_epoch;
  std::map<Epoch, std::vector<Seq>> from;  // where epochs but the first have begun, by lane
  bool retains;                            // its agents
  std::uint64_t life;
  Rng rng;
  std::deque<Job> jobs;
  std::unique_ptr<Tree> tree;  // the same in each plane
  std::unique_ptr<Script> script;
  std::unique_ptr<Oracle> oracle;
  std::vector<Member> members;                  // by rank
  std::map<std::size_t, Service> services;      // by switch
  std::vector<wire::CommDescriptor> described;  // P14: what the management knows
  std::string failure;                          // P19: what the ranks were told
  Instant progress_at{};  // when something was called, contributed or ended last
  bool closing = false;   // all is done; it closes in a moment
  bool closed = false;
};

}  // namespace cais::sim
