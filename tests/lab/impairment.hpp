// tests/lab/impairment.hpp — one direction of a bad link: packets are lost, doubled and overtaken
// as a seed says. No clock, no socket:
//
//   admit(now, frame)    takes one frame that came in; what leaves at once is handed to `send`
//   deadline()           when to call release(now), so that no held frame waits for ever
//   release(now)         sends the held frames whose time is up
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "base/time.hpp"

namespace cais::lab {

/// Shares of the frames, each in [0, 1].
struct Rates {
  double loss = 0;
  double duplicate = 0;
  double reorder = 0;
};

struct Counters {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;    // left after a frame that came later
  std::uint64_t not_held = 0;     // should have waited, but the hold was full
  std::string to_string() const;  // "received 10 sent 9 lost 1 …"
};

class Impairment {
 public:
  /// A held frame leaves after 1 to this many later frames have passed, or after hold_max.
  static constexpr std::uint64_t overtakers_max = 8;
  static constexpr std::size_t held_max = 64;
  static constexpr Duration hold_max = std::chrono::milliseconds(5);

  using Frame = std::span<const std::byte>;
  using Send = std::function<void(Frame)>;

  Impairment(const Rates& rates, std::uint64_t seed, Send send);

  void admit(Instant now, Frame frame);
  /// never when nothing is held.
  Instant deadline() const;
  void release(Instant now);

  const Counters& counters() const { return counters_; }

 private:
  struct Held {
    std::vector<std::byte> frame;
    std::uint64_t leaves_after;  // frames passed, counted like passed_
    std::uint64_t passed_when_held;
    Instant leaves_at;
  };

  void pass(Frame frame);
  void let_go(const Held& held);

  Rates rates_;
  Rng rng_;
  Send send_;
  std::uint64_t passed_ = 0;
  std::deque<Held> held_;
  Counters counters_;
};

/// Whether bad luck may strike this Ethernet frame: IPv4 only, so that ARP always works.
bool is_ipv4(Impairment::Frame frame);

}  // namespace cais::lab
