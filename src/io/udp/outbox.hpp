// io/udp/outbox.hpp — packets on their way to the socket, sorted into trains by destination.
//
//   add(...)   until full(); what it points at must stay valid until flush() has returned true
//   flush()    builds the trains and sends them; false: the socket is full, call it again when
//              it is writable, and add nothing before it has returned true
//
// The order of the packets to one destination is kept; between destinations trains take turns. Each
// member of a group begins with another one, so that not all of them queue up before the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io/udp/datagram_socket.hpp"

namespace cais::io {

class Outbox {
 public:
  /// `packets_max` bounds what is gathered before a flush; `first` is the destination that has the
  /// first turn, those after it follow.
  explicit Outbox(std::size_t packets_max, std::uint32_t first = 0)
      : packets_max_(packets_max), first_(first) {}

  /// `destination` is an index into the addresses that flush() is given.
  void add(std::uint32_t destination, std::span<const std::byte> header,
           std::span<const std::byte> payload, std::span<const std::byte> padding);
  bool full() const { return packets_ >= packets_max_; }
  bool empty() const { return packets_ == 0; }

  bool flush(DatagramSocket& socket, std::span<const Address> addresses);

 private:
  struct Run {  // a train in the making
    std::size_t piece_first;
    std::size_t piece_count;
    std::uint32_t packet_bytes;
    std::uint32_t last_bytes;
    std::uint32_t packets;
  };
  struct Queue {
    std::vector<iovec> pieces;
    std::vector<Run> runs;
  };
  void build(std::span<const Address> addresses);

  std::size_t packets_max_;
  std::uint32_t first_;
  std::size_t packets_ = 0;
  std::vector<Queue> queues_;                // by destination
  std::vector<std::uint32_t> destinations_;  // that have packets
  std::vector<Train> trains_;
  std::size_t trains_sent_ = 0;
};

}  // namespace cais::io
