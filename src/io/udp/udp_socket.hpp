// io/udp/udp_socket.hpp — a UDP socket that sends and takes packets in trains: one system call
// carries many messages (sendmmsg, recvmmsg), and one message many packets (UDP_SEGMENT, UDP_GRO).
#pragma once

#include <memory>

#include "base/result.hpp"
#include "io/udp/datagram_socket.hpp"

namespace cais::io {

struct UdpOptions {
  bool gso = true;                      // UDP_SEGMENT; given up when the kernel refuses it
  bool gro = true;                      // UDP_GRO
  std::uint8_t dscp = 46;               // S4: expedited forwarding, before bulk traffic
  std::size_t buffer_bytes = 8u << 20;  // asked of the kernel, each way; it may grant less
};

struct UdpCounters {
  std::uint64_t packets_sent = 0, messages_sent = 0;
  std::uint64_t packets_received = 0, messages_received = 0;
  std::uint64_t full = 0;       // times that the send buffer was full
  std::uint64_t refused = 0;    // packets that the kernel would not send (no route, …): lost
  std::uint64_t truncated = 0;  // messages longer than a buffer: dropped
};

class UdpSocket final : public DatagramSocket {
 public:
  /// Bound to `local`; port 0 lets the kernel choose. Never blocks.
  static Result<std::unique_ptr<UdpSocket>> open(const Address& local, const UdpOptions& options);
  ~UdpSocket() override;

  std::size_t send(std::span<const Train> trains) override;
  std::size_t receive(BufferPool& pool, std::span<Arrival> out) override;
  int fd() const override;
  Address address() const override;

  const UdpCounters& counters() const;
  bool gso() const;

 private:
  struct State;
  explicit UdpSocket(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace cais::io
