// rpc/switch_management.hpp — the management interface of a cais-switch as plain C++: what the gRPC
// server (server.hpp) calls, and what proto/cais/v1/switch.proto says in its own words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "wire/keys.hpp"

namespace cais::rpc {

struct JoinRequest {
  std::string group;
  Rank rank;
  std::uint16_t ranks = 1;
  std::string udp_address;
  wire::Tags tags{};
  std::uint32_t fragment_bytes = 0;
  std::uint32_t window_fragments = 0;  // all lanes together
  std::string name;
};

struct Joined {
  SessionId session;
  Epoch epoch;
  std::vector<std::uint16_t> lane_ports;
  std::uint32_t window_fragments = 0;
  wire::RankSecrets secrets;  // of the rank that it goes to
};
struct Mismatched {
  Rank first, second;
  std::string first_descriptor, second_descriptor;  // 128 bytes each
};
struct Left {
  Rank rank;
  std::uint64_t ops = 0;
};
struct Ended {
  Error error;
};
using SessionEvent = std::variant<Joined, Mismatched, Left, Ended>;

/// Where the events of one rank go. May be called from any thread; never blocks.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void send(const SessionEvent& event) = 0;
  /// No more events: the stream ends.
  virtual void close() = 0;
};

struct Member {
  SessionId session;
  Rank rank;
  wire::Secret own;  // who does not know it is not that member
};

struct SessionStatus {
  SessionId session;
  std::string group;
  std::uint16_t ranks = 0;
  std::uint16_t present = 0;
};
struct Status {
  std::uint32_t workers = 0;
  std::vector<SessionStatus> sessions;
  std::uint64_t slots_in_use = 0;
  std::uint64_t packets_received = 0, packets_accepted = 0;
  std::map<std::string, std::uint64_t> packets_dropped;
};

/// Thread-safe.
class SwitchManagement {
 public:
  virtual ~SwitchManagement() = default;
  /// Joined goes to `events` once all ranks are there. invalid_argument: it does not fit what the
  /// other ranks said; resource_exhausted: too many sessions.
  virtual Result<void> join(const JoinRequest& request, std::shared_ptr<EventSink> events) = 0;
  /// The stream behind `events` is no more: unless the rank has left before, it is lost (P19).
  virtual void gone(const EventSink& events) = 0;
  virtual Result<void> describe(const Member& member, std::span<const std::byte> descriptor,
                                std::span<const std::byte> shown) = 0;
  virtual Result<void> leave(const Member& member, std::uint64_t ops) = 0;
  virtual Result<void> abort(const Member& member, const Error& reason) = 0;
  virtual Status status() = 0;
};

}  // namespace cais::rpc
