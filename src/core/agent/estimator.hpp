// core/agent/estimator.hpp — how long an answer takes (P2), and how much may be on its way: the
// round-trip estimator of a session, and the congestion window of a lane.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace cais::agent {

/// Smoothed round-trip time (Jacobson 1988; RFC 6298's gain) and the timeout of P2, 1.5 times it.
/// Answers to a burst come late together when a rank is late; so that one late rank counts once,
/// a sample is taken at most once per round trip.
class RttEstimator {
 public:
  RttEstimator(Duration rto_initial, Duration rto_min, Duration rto_max)
      : rto_initial_(rto_initial), rto_min_(rto_min), rto_max_(rto_max) {}

  void sample(Instant now, Duration rtt);
  Duration smoothed() const { return smoothed_; }
  /// Doubled `backoff` times, within the bounds.
  Duration rto(unsigned backoff) const;

 private:
  Duration rto_initial_, rto_min_, rto_max_;
  Duration smoothed_{0};
  Instant next_sample_ = Instant::min();
};

/// Fragments of a lane that may be on their way. Grows while they come through; shrinks with the
/// share that is lost, once it is more than a link loses by chance: then a queue overflows.
class CongestionWindow {
 public:
  explicit CongestionWindow(std::uint32_t fragments_max);

  std::uint32_t fragments() const { return fragments_; }
  void settled();
  void lost() { ++lost_; }

 private:
  std::uint32_t fragments_max_;
  std::uint32_t fragments_;
  bool starting_ = true;       // doubling each round, until something is lost
  std::uint32_t settled_ = 0;  // of the round
  std::uint32_t lost_ = 0;
};

}  // namespace cais::agent
