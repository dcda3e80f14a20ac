// runtime/udp/endpoint.hpp — the packets of one rank in one session: its agent, the switch that it
// may embed, and the socket that both speak through. The lane that the embedded switch serves
// for this rank itself goes from one to the other in memory.
//
// Belongs to one thread at a time. It keeps the contracts of Agent and Switch: what they hand out
// has left the outbox before they are fed again.
#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/buffer.hpp"
#include "core/agent/agent.hpp"
#include "core/switching/switch.hpp"
#include "io/udp/datagram_socket.hpp"
#include "io/udp/outbox.hpp"

namespace cais::runtime {

struct EndpointConfig {
  agent::Config agent;
  /// Where packets go. With an embedded switch: the ranks, in order; otherwise: the box's ports.
  std::vector<io::Address> addresses;
  /// Of each lane of the session: the index in `addresses` of whoever serves it.
  std::vector<std::uint32_t> lane_servers;
  bool embeds_switch = true;
  std::uint32_t payload_bytes_max = 0;  // of one fragment
};

/// P16: who holds up what is under way.
struct HeldUpBy {
  std::uint64_t ranks = 0;    // bit r: a switch lacks the contribution of rank r
  std::uint64_t servers = 0;  // bit i: addresses[i] has not answered
};

struct EndpointCounters {
  std::uint64_t from_strangers = 0;  // results from an address that is none of ours: dropped
};

class Endpoint {
 public:
  static Result<std::unique_ptr<Endpoint>> make(const EndpointConfig& config,
                                                std::unique_ptr<io::DatagramSocket> socket);

  /// Whether submit() may be called: nothing waits for the socket.
  bool ready() const { return outbox_.empty() && own_results_.empty(); }
  void submit(const agent::Submit& op);
  /// Makes the embedded switch know it.
  Result<void> define(const wire::CommDescriptor& descriptor);

  /// Does what can be done without waiting; true when any packet moved.
  bool progress();
  bool poll_event(agent::Event& out) { return agent_.poll_event(out); }
  bool poll_switch_event(switching::Event& out) { return switch_ && switch_->poll_event(out); }

  /// What to wait for before the next progress(), and until when.
  pollfd waits_for() const;
  Instant deadline() const { return agent_.deadline(); }

  HeldUpBy held_up_by() const;
  /// Index in `addresses` of the switch that serves the lane.
  std::uint32_t server_of(Lane lane) const { return config_.lane_servers[lane.value]; }

  /// What was sent, repeated, dropped, in one line for the log.
  std::string summary() const;

 private:
  static constexpr std::size_t arrivals_max = 8;

  Endpoint(const EndpointConfig& config, std::unique_ptr<io::DatagramSocket> socket);
  bool receive();
  void take(const io::Arrival& arrival);
  std::uint32_t sender_of(const io::Address& address);
  bool pump();
  bool drain_agent(Instant now);
  bool drain_switch();
  bool flush() { return outbox_.flush(*socket_, config_.addresses); }
  void contribute_own(const agent::Transmit& transmit);
  void deliver_own(const switching::Transmit& transmit);

  EndpointConfig config_;
  SessionId session_;
  // The order matters: what holds buffers of the pool is destroyed before it.
  BufferPool pool_;
  std::unique_ptr<io::DatagramSocket> socket_;
  agent::Agent agent_;
  std::optional<switching::Switch> switch_;
  io::Outbox outbox_;

  std::array<io::Arrival, arrivals_max> arrivals_;
  std::uint32_t last_sender_ = 0;

  // The own lane: contributions are packed into a buffer, as if they had come in a train; results
  // wait for the outbox to be empty.
  BufferRef own_buffer_;
  std::size_t own_buffer_used_ = 0;
  std::vector<switching::Transmit> own_results_;
  std::vector<std::byte> scratch_;
  EndpointCounters counters_;
};

}  // namespace cais::runtime
