// io/udp/datagram_socket.hpp — what the runtime asks of a datagram socket: trains of packets out,
// trains of packets in. UdpSocket (udp_socket.hpp) is the real one.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/buffer.hpp"
#include "io/address.hpp"

namespace cais::io {

/// Packets to one address, all of `packet_bytes`, the last one perhaps shorter. The pieces of each
/// packet lie one after the other in `pieces`, and no piece belongs to two packets.
struct Train {
  Address to;
  std::span<const iovec> pieces;
  std::uint32_t packet_bytes;
  std::uint32_t packets;
};

/// What the kernel takes as one message: UDP's own limit less the largest IP header, and the
/// segments that UDP_SEGMENT allows on every kernel that has it.
inline constexpr std::uint32_t train_bytes_max = 65'487;
inline constexpr std::uint32_t train_packets_max = 64;
inline constexpr std::size_t receive_buffer_bytes = 65'536;

/// Packets that came together from one address: as in Train, but in one buffer.
struct Arrival {
  Address from;
  Packet train;
  std::uint32_t packet_bytes;
};

class DatagramSocket {
 public:
  virtual ~DatagramSocket() = default;

  /// Hands trains to the kernel, in order; the number that it took. Fewer than all: the send
  /// buffer is full, and the rest must be sent again when the socket is writable.
  virtual std::size_t send(std::span<const Train> trains) = 0;

  /// Takes what has arrived, without waiting; the number of `out` that were filled. The buffers
  /// come from `pool` and hold receive_buffer_bytes; with the pool used up, nothing is taken.
  virtual std::size_t receive(BufferPool& pool, std::span<Arrival> out) = 0;

  /// For poll(2).
  virtual int fd() const = 0;
  /// The local address, as bound.
  virtual Address address() const = 0;
};

}  // namespace cais::io
