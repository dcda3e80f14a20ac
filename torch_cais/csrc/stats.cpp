#include "stats.hpp"

namespace cais::pytorch {

std::vector<GroupStats::Row> GroupStats::rows() const {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    const std::uint64_t calls = counters_[i].calls.load(std::memory_order_relaxed);
    if (calls == 0) continue;
    const Route route{static_cast<Path>(i / reasons % paths), static_cast<Reason>(i % reasons)};
    rows.push_back({static_cast<Op>(i / reasons / paths), route, calls,
                    counters_[i].bytes.load(std::memory_order_relaxed)});
  }
  return rows;
}

void GroupStats::reset() {
  for (Counter& counter : counters_) {
    counter.calls.store(0, std::memory_order_relaxed);
    counter.bytes.store(0, std::memory_order_relaxed);
  }
}

}  // namespace cais::pytorch
