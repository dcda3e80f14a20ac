// io/shm/ranges.hpp — a set of disjoint ranges that grow together where they touch, and from which
// the best fit is taken: the free lists of the arena.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace cais::io {

/// Half-open range of bytes [offset, offset + bytes).
struct Range {
  std::size_t offset;
  std::size_t bytes;
  std::size_t end() const { return offset + bytes; }
  bool operator==(const Range&) const = default;
};

/// Not thread-safe. Every operation takes O(log n).
class RangeSet {
 public:
  /// Adds a range that overlaps none of the set; joins its neighbours.
  void insert(Range range);
  /// Takes the first `bytes` of the smallest range that holds them, or nothing.
  std::optional<Range> take(std::size_t bytes);
  /// Takes the largest range whole, or nothing.
  std::optional<Range> take_largest();

  std::size_t bytes() const { return bytes_; }
  bool empty() const { return ends_.empty(); }

  /// The ranges in the order of their offsets.
  template <typename Function>
  void for_each(Function function) const {
    for (const auto& [offset, end] : ends_) function(Range{offset, end - offset});
  }

 private:
  using Ends = std::map<std::size_t, std::size_t>;
  Range erase(Ends::iterator at);
  void add(Range range);

  Ends ends_;                                              // offset → end
  std::set<std::pair<std::size_t, std::size_t>> by_size_;  // (bytes, offset)
  std::size_t bytes_ = 0;
};

}  // namespace cais::io
