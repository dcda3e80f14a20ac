// io/shm/ranges.cpp — joins and splits free ranges; kept by offset to join, by size to fit.
#include "io/shm/ranges.hpp"

#include <iterator>

#include "base/check.hpp"

namespace cais::io {

void RangeSet::add(Range range) {
  ends_.emplace(range.offset, range.end());
  by_size_.emplace(range.bytes, range.offset);
  bytes_ += range.bytes;
}

Range RangeSet::erase(Ends::iterator at) {
  const Range range{at->first, at->second - at->first};
  by_size_.erase({range.bytes, range.offset});
  ends_.erase(at);
  bytes_ -= range.bytes;
  return range;
}

void RangeSet::insert(Range range) {
  auto after = ends_.lower_bound(range.offset);
  if (after != ends_.begin()) {
    const auto before = std::prev(after);
    CAIS_CHECK(before->second <= range.offset);
    if (before->second == range.offset) {
      const Range joined = erase(before);
      range = {joined.offset, joined.bytes + range.bytes};
    }
  }
  if (after != ends_.end()) {
    CAIS_CHECK(range.end() <= after->first);
    if (range.end() == after->first) range.bytes += erase(after).bytes;
  }
  add(range);
}

std::optional<Range> RangeSet::take(std::size_t bytes) {
  const auto fit = by_size_.lower_bound({bytes, 0});
  if (fit == by_size_.end()) return std::nullopt;
  const Range range = erase(ends_.find(fit->second));
  if (range.bytes > bytes) add({range.offset + bytes, range.bytes - bytes});
  return Range{range.offset, bytes};
}

std::optional<Range> RangeSet::take_largest() {
  if (by_size_.empty()) return std::nullopt;
  return erase(ends_.find(std::prev(by_size_.end())->second));
}

}  // namespace cais::io
