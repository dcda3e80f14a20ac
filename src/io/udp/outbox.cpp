#include "io/udp/outbox.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace cais::io {
namespace {

void append(std::vector<iovec>& pieces, std::span<const std::byte> bytes) {
  if (!bytes.empty()) pieces.push_back({const_cast<std::byte*>(bytes.data()), bytes.size()});
}

}  // namespace

void Outbox::add(std::uint32_t destination, std::span<const std::byte> header,
                 std::span<const std::byte> payload, std::span<const std::byte> padding) {
  CAIS_DCHECK(trains_.empty());
  if (destination >= queues_.size()) queues_.resize(destination + 1);
  Queue& queue = queues_[destination];
  if (queue.runs.empty()) destinations_.push_back(destination);

  const std::size_t first = queue.pieces.size();
  append(queue.pieces, header);
  append(queue.pieces, payload);
  append(queue.pieces, padding);
  const std::size_t pieces = queue.pieces.size() - first;
  const auto bytes = static_cast<std::uint32_t>(header.size() + payload.size() + padding.size());
  ++packets_;

  if (!queue.runs.empty()) {
    Run& run = queue.runs.back();
    // Only the last packet of a train may be shorter than the others.
    const bool fits = run.last_bytes == run.packet_bytes && bytes <= run.packet_bytes &&
                      run.packets < train_packets_max &&
                      run.packet_bytes * run.packets + bytes <= train_bytes_max;
    if (fits) {
      run.piece_count += pieces;
      run.last_bytes = bytes;
      ++run.packets;
      return;
    }
  }
  queue.runs.push_back(Run{first, pieces, bytes, bytes, 1});
}

void Outbox::build(std::span<const Address> addresses) {
  // Unsigned distance: those before `first_` come last.
  std::sort(destinations_.begin(), destinations_.end(),
            [this](std::uint32_t a, std::uint32_t b) { return a - first_ < b - first_; });
  bool more = true;
  for (std::size_t turn = 0; more; ++turn) {
    more = false;
    for (const std::uint32_t destination : destinations_) {
      const Queue& queue = queues_[destination];
      if (turn >= queue.runs.size()) continue;
      const Run& run = queue.runs[turn];
      trains_.push_back(Train{addresses[destination],
                              std::span(queue.pieces).subspan(run.piece_first, run.piece_count),
                              run.packet_bytes, run.packets});
      more = true;
    }
  }
}

bool Outbox::flush(DatagramSocket& socket, std::span<const Address> addresses) {
  if (packets_ == 0) return true;
  if (trains_.empty()) build(addresses);
  trains_sent_ += socket.send(std::span(trains_).subspan(trains_sent_));
  if (trains_sent_ < trains_.size()) return false;
  for (const std::uint32_t destination : destinations_) {
    queues_[destination].pieces.clear();
    queues_[destination].runs.clear();
  }
  destinations_.clear();
  trains_.clear();
  trains_sent_ = 0;
  packets_ = 0;
  return true;
}

}  // namespace cais::io
