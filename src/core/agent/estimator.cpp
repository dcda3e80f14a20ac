#include "core/agent/estimator.hpp"

namespace cais::agent {
namespace {

constexpr std::uint32_t window_min = 4;  // what NAKs need to see a gap (P11)
constexpr std::uint32_t loss_tolerated_percent = 10;
/// Long enough to keep a link busy while a host is not scheduled, short enough that a repeat is
/// answered before the window of P1 is used up.
constexpr Duration queueing_wanted = std::chrono::milliseconds(6);
constexpr unsigned backoff_max = 4;  // questions are small, they need not become rare

}  // namespace

void RttEstimator::sample(Instant now, Duration rtt, bool clocked) {
  least_ = std::min(least_, rtt);
  if (smoothed_ == Duration(0)) {
    smoothed_ = rtt;
    next_sample_ = now + smoothed_;
    return;
  }
  if (!clocked && rtt > smoothed_) return;
  quickest_ = std::min(quickest_, rtt);
  quickest_of_round_ = std::min(quickest_of_round_, rtt);
  if (now < next_sample_) return;
  smoothed_ += (quickest_ - smoothed_) / 8;
  quickest_ = Duration::max();
  next_sample_ = now + smoothed_;
}

void RttEstimator::question_answered(Instant now, Duration rtt) {
  sample(now, rtt, true);
  ceiling_ = 2 * rtt;
  smoothed_ = std::clamp(smoothed_, rtt, ceiling_);
}

Duration RttEstimator::take_quickest() {
  const Duration quickest = quickest_of_round_;
  quickest_of_round_ = Duration::max();
  return quickest == Duration::max() ? Duration(0) : quickest;
}

Duration RttEstimator::rto(unsigned backoff) const {
  const Duration once = smoothed_ == Duration(0) ? rto_initial_ : std::min(smoothed_, ceiling_) * 2;
  const Duration rto = std::clamp(once, rto_min_, rto_max_);
  return std::min<Duration>(rto * (std::int64_t{1} << std::min(backoff, backoff_max)), rto_max_);
}

CongestionWindow::CongestionWindow(std::uint32_t fragments_max, std::uint32_t packets_initial)
    : packets_max_(std::max(fragments_max / 2, std::min(packets_initial, fragments_max))),
      packets_(std::min(packets_initial, fragments_max)) {}

void CongestionWindow::end_round(Duration quickest, Duration queued) {
  const std::uint32_t lost_percent = lost_ == 0 ? 0 : 100 * lost_ / (settled_ + lost_);
  std::uint64_t wanted = packets_;
  if (lost_percent > loss_tolerated_percent) {
    wanted -= packets_ * std::min(lost_percent, 50u) / 100;
  } else if (quickest > Duration(0)) {
    const auto took = static_cast<std::uint64_t>(quickest.count());
    const auto goal = static_cast<std::uint64_t>((quickest - queued + queueing_wanted).count());
    const std::uint64_t fitting = packets_ * goal / took;
    starting_ = starting_ && fitting >= 2 * packets_;
    // In small steps, once the start is over: what an answer tells is a round trip old, and even
    // the quickest may have waited for a late rank.
    const std::uint64_t step = std::max(packets_ / 8, 1u);
    const std::uint64_t growth = !held_back_ ? 0 : starting_ ? packets_ : step;
    wanted = std::clamp<std::uint64_t>(fitting, packets_ - step, packets_ + growth);
  }
  const std::uint32_t least = std::min(window_min, packets_max_);
  packets_ = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, least, packets_max_));
  settled_ = lost_ = 0;
  held_back_ = false;
}

}  // namespace cais::agent
