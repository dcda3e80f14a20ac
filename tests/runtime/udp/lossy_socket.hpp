// A socket between two honest ones that loses, doubles and reorders packets, from a seed.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/rng.hpp"
#include "io/udp/datagram_socket.hpp"
#include "runtime/udp/udp_transport.hpp"

namespace cais::runtime {

struct Faults {
  double loss = 0, duplication = 0, reordering = 0;
};

/// Sends each packet on its own, so that each meets its own fate. A reordered packet is held back
/// until the next one has been sent.
class LossySocket final : public io::DatagramSocket {
 public:
  LossySocket(std::unique_ptr<io::DatagramSocket> inner, const Faults& faults, std::uint64_t seed)
      : inner_(std::move(inner)), faults_(faults), rng_(seed) {}

  std::size_t send(std::span<const io::Train> trains) override {
    for (const io::Train& train : trains) {
      std::vector<std::byte> bytes;
      for (const iovec& piece : train.pieces) {
        const auto* begin = static_cast<const std::byte*>(piece.iov_base);
        bytes.insert(bytes.end(), begin, begin + piece.iov_len);
      }
      std::span<const std::byte> rest = bytes;
      while (!rest.empty()) {
        const auto packet = rest.first(std::min<std::size_t>(train.packet_bytes, rest.size()));
        rest = rest.subspan(packet.size());
        meet_fate(train.to, packet);
      }
    }
    return trains.size();
  }
  std::size_t receive(BufferPool& pool, std::span<io::Arrival> out) override {
    return inner_->receive(pool, out);
  }
  int fd() const override { return inner_->fd(); }
  io::Address address() const override { return inner_->address(); }

 private:
  struct Held {
    io::Address to;
    std::vector<std::byte> packet;
  };

  void meet_fate(const io::Address& to, std::span<const std::byte> packet) {
    if (rng_.chance(faults_.loss)) return;
    if (!held_ && rng_.chance(faults_.reordering)) {
      held_ = Held{to, {packet.begin(), packet.end()}};
      return;
    }
    pass(to, packet);
    if (rng_.chance(faults_.duplication)) pass(to, packet);
    if (held_) {
      pass(held_->to, held_->packet);
      held_.reset();
    }
  }
  // What does not fit the socket's buffer is lost too.
  void pass(const io::Address& to, std::span<const std::byte> packet) {
    const iovec piece{const_cast<std::byte*>(packet.data()), packet.size()};
    const io::Train train{to, {&piece, 1}, static_cast<std::uint32_t>(packet.size()), 1};
    (void)inner_->send({&train, 1});
  }

  std::unique_ptr<io::DatagramSocket> inner_;
  Faults faults_;
  Rng rng_;
  std::optional<Held> held_;
};

inline SocketFactory lossy(const Faults& faults, std::uint64_t seed) {
  return [=](const io::Address& local,
             const io::UdpOptions& options) -> Result<std::unique_ptr<io::DatagramSocket>> {
    auto socket = open_udp_socket(local, options);
    if (!socket) return socket.error();
    return std::unique_ptr<io::DatagramSocket>(
        std::make_unique<LossySocket>(std::move(*socket), faults, seed));
  };
}

}  // namespace cais::runtime
