#include "tests/lab/hostility.hpp"

#include "wire/header.hpp"

namespace cais::lab {
namespace {

constexpr std::size_t ethernet_bytes = 14;
constexpr std::size_t ip_bytes = 20;
constexpr std::size_t udp_bytes = 8;
constexpr std::size_t udp_at = ethernet_bytes + ip_bytes;
constexpr std::size_t packet_at = udp_at + udp_bytes;
constexpr std::size_t random_bytes_max = 1400;

// Where the fields lie in the header (docs/wire.md).
constexpr std::size_t session_at = 0, seq_at = 4, epoch_at = 8, rank_at = 10, kind_at = 13;

unsigned at(std::span<const std::byte> bytes, std::size_t where) {
  return std::to_integer<unsigned>(bytes[where]);
}

void put16(std::vector<std::byte>& bytes, std::size_t where, std::uint64_t value) {
  bytes[where] = static_cast<std::byte>(value >> 8);
  bytes[where + 1] = static_cast<std::byte>(value);
}

/// IPv4 without options, UDP, long enough for a header.
bool is_ours(std::span<const std::byte> frame) {
  if (frame.size() < packet_at + wire::header_bytes) return false;
  if (at(frame, 12) != 0x08 || at(frame, 13) != 0 || at(frame, 14) != 0x45) return false;
  if (at(frame, ethernet_bytes + 9) != 17) return false;
  wire::Header header;
  return wire::parse(frame.subspan(packet_at), header) == wire::ParseError::none;
}

/// Lengths and checksums for what the frame holds now (RFC 791, RFC 768).
void seal(std::vector<std::byte>& frame) {
  put16(frame, ethernet_bytes + 2, frame.size() - ethernet_bytes);
  put16(frame, udp_at + 4, frame.size() - udp_at);
  put16(frame, udp_at + 6, 0);
  put16(frame, ethernet_bytes + 10, 0);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < ip_bytes; i += 2) {
    sum += at(frame, ethernet_bytes + i) << 8 | at(frame, ethernet_bytes + i + 1);
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  put16(frame, ethernet_bytes + 10, ~sum & 0xffff);
}

}  // namespace

void Hostility::learn(std::span<const std::byte> frame) {
  if (!is_ours(frame)) return;
  if (frames_.size() < remembered) {
    frames_.emplace_back(frame.begin(), frame.end());
    return;
  }
  frames_[oldest_].assign(frame.begin(), frame.end());
  oldest_ = (oldest_ + 1) % remembered;
}

std::optional<std::vector<std::byte>> Hostility::next() {
  if (frames_.empty()) return std::nullopt;
  const auto which = made_++ % static_cast<std::size_t>(Kind::count_);
  ++counts_[which];
  return disturbed(static_cast<Kind>(which), frames_[rng_.below(frames_.size())]);
}

std::vector<std::byte> Hostility::disturbed(Kind kind, std::vector<std::byte> frame) {
  const auto fill = [&](std::size_t from, std::size_t bytes) {
    for (std::size_t i = from; i < from + bytes; ++i)
      frame[i] = static_cast<std::byte>(rng_.next());
  };
  switch (kind) {
    case Kind::replayed:
    case Kind::count_:
      break;
    case Kind::random:
      frame.resize(packet_at + rng_.below(random_bytes_max));
      fill(packet_at, frame.size() - packet_at);
      break;
    case Kind::truncated:
      frame.resize(packet_at + rng_.below(frame.size() - packet_at));
      break;
    case Kind::flipped: {
      const std::uint64_t bit = rng_.below(8 * (frame.size() - packet_at));
      frame[packet_at + bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
      break;
    }
    case Kind::session:
      fill(packet_at + session_at, 4);
      break;
    case Kind::epoch:
      fill(packet_at + epoch_at, 2);
      break;
    case Kind::rank:
      put16(frame, packet_at + rank_at, rng_.below(8));
      break;
    case Kind::kind:
      frame[packet_at + kind_at] = static_cast<std::byte>(rng_.below(12));
      break;
    case Kind::seq:
      fill(packet_at + seq_at, 4);
      break;
    case Kind::payload:
      fill(packet_at + wire::header_bytes, frame.size() - packet_at - wire::header_bytes);
      break;
    case Kind::port:
      fill(udp_at, 2);
      break;
  }
  if (to_port_ != 0) put16(frame, udp_at + 2, to_port_);
  seal(frame);
  return frame;
}

std::string Hostility::to_string() const {
  static constexpr const char* names[] = {"replayed", "random",  "truncated", "flipped",
                                          "session",  "epoch",   "rank",      "kind",
                                          "seq",      "payload", "port"};
  static_assert(std::size(names) == static_cast<std::size_t>(Kind::count_));
  std::string text;
  for (std::size_t i = 0; i < std::size(names); ++i) {
    text +=
        std::string(i == 0 ? "" : " ") + "hostile_" + names[i] + " " + std::to_string(counts_[i]);
  }
  return text;
}

}  // namespace cais::lab
