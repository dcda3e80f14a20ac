#include "core/agent/estimator.hpp"

namespace cais::agent {
namespace {

constexpr std::uint32_t window_initial = 64;  // small ops go out at once
constexpr std::uint32_t window_min = 8;
constexpr std::uint32_t loss_tolerated_percent = 3;
constexpr unsigned backoff_max = 16;

}  // namespace

void RttEstimator::sample(Instant now, Duration rtt) {
  if (now < next_sample_) return;
  smoothed_ = smoothed_ == Duration(0) ? rtt : smoothed_ + (rtt - smoothed_) / 8;
  next_sample_ = now + smoothed_;
}

Duration RttEstimator::rto(unsigned backoff) const {
  Duration rto = smoothed_ == Duration(0) ? rto_initial_ : smoothed_ * 3 / 2;
  rto = std::clamp(rto, rto_min_, rto_max_);
  return std::min<Duration>(rto * (std::int64_t{1} << std::min(backoff, backoff_max)), rto_max_);
}

CongestionWindow::CongestionWindow(std::uint32_t fragments_max)
    : fragments_max_(fragments_max), fragments_(std::min(window_initial, fragments_max)) {}

void CongestionWindow::settled() {
  if (++settled_ < fragments_) return;
  const std::uint32_t lost_percent = 100 * lost_ / (settled_ + lost_);
  if (lost_percent > loss_tolerated_percent) {
    const std::uint32_t cut = fragments_ * std::min(lost_percent, 50u) / 100;
    fragments_ = std::max(fragments_ - cut, std::min(window_min, fragments_max_));
    starting_ = false;
  } else {
    const std::uint32_t more = starting_ ? fragments_ : std::max(1u, fragments_ / 16);
    fragments_ = std::min(fragments_ + more, fragments_max_);
  }
  settled_ = 0;
  lost_ = 0;
}

}  // namespace cais::agent
