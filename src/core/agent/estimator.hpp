// core/agent/estimator.hpp — how long an answer takes (P2), and how much may be on its way: the
// round-trip estimator of a lane, and the congestion window that the lanes of a session share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace cais::agent {

/// Smoothed round-trip time (Jacobson 1988; RFC 6298's gain), and the timeout of P2.
///
/// A fragment is answered when the last rank has contributed, so its round trip may hold the
/// lateness of a rank, or the repair of what another one lost. Both only ever make it longer: of
/// all answers within a round trip the quickest is taken, and the answer to a fragment that no
/// answer called forth, when ranks need not run together, counts only if it makes the estimate
/// less.
class RttEstimator {
 public:
  RttEstimator(Duration rto_initial, Duration rto_min, Duration rto_max)
      : rto_initial_(rto_initial), rto_min_(rto_min), rto_max_(rto_max) {}

  /// `clocked`: an answer called the fragment forth.
  void sample(Instant now, Duration rtt, bool clocked);
  /// The answer to a question (P16) came after `rtt`. It waited for no rank, so that an estimate
  /// that is shorter is wrong, and what a timeout may add for the others is bounded.
  void question_answered(Instant now, Duration rtt);
  /// Zero before the first sample.
  Duration smoothed() const { return smoothed_; }
  /// The quickest answer since it was last called; zero: none.
  Duration take_quickest();
  /// The quickest answer ever: the round trip without queues.
  Duration least() const { return least_; }
  /// Doubled `backoff` times, within the bounds.
  Duration rto(unsigned backoff) const;

 private:
  Duration rto_initial_, rto_min_, rto_max_;
  Duration smoothed_{0};
  Duration ceiling_ = Duration::max();  // of what a timeout counts with, by the latest question
  Duration least_ = Duration::max();
  Duration quickest_ = Duration::max();  // since `smoothed_` last took one
  Duration quickest_of_round_ = Duration::max();
  Instant next_sample_ = Instant::min();
};

/// Packets of each lane that may be on their way to us, one for each sum, done or payload that we
/// are owed: an all-gather's fragment brings one of every rank. The same number for all lanes, so
/// that they advance alike and none is left over to finish alone on part of the links. Each round
/// trip sets it so that answers queue for a short time only (the rule of FAST TCP: Jin, Wei, Low
/// 2004): what waits in a queue gains nothing, and keeps repeats waiting behind it. When more is
/// lost than links lose by chance, a queue overflows, and the window shrinks by the share that was
/// lost.
class CongestionWindow {
 public:
  CongestionWindow(std::uint32_t fragments_max, std::uint32_t packets_initial);

  std::uint32_t packets() const { return packets_; }
  /// More was to be sent than the window allows; without that it does not grow (RFC 7661).
  void held_back() { held_back_ = true; }
  void lost() { ++lost_; }
  void settled() { ++settled_; }
  /// Ends a round. Its quickest answer came after `quickest`, of which `queued` were spent in
  /// queues.
  void end_round(Duration quickest, Duration queued);

 private:
  std::uint32_t packets_max_;
  std::uint32_t packets_;
  bool starting_ = true;  // doubling each round, as long as there is room
  // Of the round that is under way:
  std::uint32_t settled_ = 0;
  std::uint32_t lost_ = 0;
  bool held_back_ = false;
};

}  // namespace cais::agent
