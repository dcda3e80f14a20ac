// sim/timeline.hpp — what will happen, in order of time; what was planned first comes first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/time.hpp"

namespace cais::sim {

class Timeline {
 public:
  Instant now() const { return now_; }
  void at(Instant when, std::function<void()> what) {
    events_.push_back({std::max(when, now_), planned_++, std::move(what)});
    std::push_heap(events_.begin(), events_.end(), later);
  }
  void after(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }
  /// When the next thing happens; never: nothing is planned.
  Instant next() const { return events_.empty() ? never : events_.front().when; }
  /// Lets time pass to `when` without anything happening.
  void advance(Instant when) { now_ = std::max(now_, when); }
  /// The next thing happens.
  void step() {
    std::pop_heap(events_.begin(), events_.end(), later);
    const Event event = std::move(events_.back());
    events_.pop_back();
    now_ = event.when;
    event.what();
  }

 private:
  struct Event {
    Instant when;
    std::uint64_t order;
    std::function<void()> what;
  };
  static bool later(const Event& a, const Event& b) {
    return a.when != b.when ? a.when > b.when : a.order > b.order;
  }
  Instant now_{};
  std::uint64_t planned_ = 0;
  std::vector<Event> events_;  // a heap
};

}  // namespace cais::sim
