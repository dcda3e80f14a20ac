#include "runtime/shm/write_policy.hpp"

#include <algorithm>
#include <bit>

#include "base/check.hpp"
#include "runtime/shm/layout.hpp"

namespace cais::runtime::shm {
namespace {

// So much more may a line cost through the cache than past it: it is what its readers save.
// Measured on Zen 4: 0 to 7 within a chiplet, 10 to 25 between two.
constexpr float through_cache_ns_max = 9;

constexpr std::uint32_t probe_period_min = 4;
constexpr std::uint32_t probe_period_max = 64;

WritePolicy::Way other(WritePolicy::Way way) {
  return way == WritePolicy::Way::through_cache ? WritePolicy::Way::past_cache
                                                : WritePolicy::Way::through_cache;
}

}  // namespace

float WritePolicy::Cost::ns_per_line() const { return *std::ranges::min_element(samples_); }

std::size_t WritePolicy::class_of(std::size_t bytes) {
  const auto doublings = static_cast<std::size_t>(std::bit_width(bytes / timed_bytes_min)) - 1;
  return std::min(doublings / 2, std::tuple_size_v<decltype(classes_)> - 1);
}

WritePolicy::Way WritePolicy::choose(std::size_t bytes) {
  CAIS_CHECK(bytes >= timed_bytes_min);
  SizeClass& size_class = classes_[class_of(bytes)];
  if (--size_class.writes_to_probe != 0) return size_class.better;
  size_class.probe_period =
      std::clamp(2 * size_class.probe_period, probe_period_min, probe_period_max);
  size_class.writes_to_probe = size_class.probe_period;
  return other(size_class.better);
}

void WritePolicy::took(std::size_t bytes, Way way, Duration time) {
  SizeClass& size_class = classes_[class_of(bytes)];
  const std::size_t whole_lines = bytes / line_bytes;
  const auto lines = static_cast<float>(whole_lines);
  auto& [through, past] = size_class.costs;
  (way == Way::through_cache ? through : past).add(static_cast<float>(time.count()) / lines);
  const bool past_is_better = through.ns_per_line() - past.ns_per_line() > through_cache_ns_max;
  better_ = past_is_better ? Way::past_cache : Way::through_cache;
  if (better_ == size_class.better) return;
  size_class.better = better_;
  size_class.probe_period = 0;  // sure is who has seen it again soon
  size_class.writes_to_probe = probe_period_min;
}

}  // namespace cais::runtime::shm
