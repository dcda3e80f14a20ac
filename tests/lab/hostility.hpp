// tests/lab/hostility.hpp — what somebody in the middle sends who means harm: UDP packets of the
// two hosts again, cut, changed, or made up, from the addresses of real ones. No clock, no socket:
//
//   learn(frame)   takes a frame that has passed
//   next()         a hostile frame; nothing as long as there was no frame to learn from
//
// Ethernet, IPv4 and UDP of what it makes are sound, so that it reaches CAIS; UDP checksums are
// zero, which IPv4 allows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/rng.hpp"

namespace cais::lab {

class Hostility {
 public:
  enum class Kind : std::uint8_t {
    replayed,
    random,  // any bytes, of any length
    truncated,
    flipped,  // one bit of header or payload
    session,  // of another session
    epoch,
    rank,     // speaks as another rank
    kind,     // of another, or of no kind
    seq,      // anywhere in the seq space
    payload,  // other tensor bytes under the same header
    port,     // from another port
    count_,
  };
  using Counts = std::array<std::uint64_t, static_cast<std::size_t>(Kind::count_)>;

  /// `to_port`: where all of it goes instead of where the real ones went; 0: there.
  explicit Hostility(std::uint64_t seed, std::uint16_t to_port = 0)
      : rng_(seed), to_port_(to_port) {}

  void learn(std::span<const std::byte> frame);
  std::optional<std::vector<std::byte>> next();

  const Counts& counts() const { return counts_; }
  std::string to_string() const;  // "hostile_replayed 10 hostile_random 9 …"

 private:
  std::vector<std::byte> disturbed(Kind kind, std::vector<std::byte> frame);

  static constexpr std::size_t remembered = 64;

  Rng rng_;
  std::uint16_t to_port_;
  std::vector<std::vector<std::byte>> frames_;
  std::size_t oldest_ = 0;
  std::uint64_t made_ = 0;
  Counts counts_{};
};

}  // namespace cais::lab
