// torch_cais/csrc/stats.hpp — how many collectives of a group went which way, and why.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "route.hpp"

namespace cais::pytorch {

struct GroupIdentity {
  std::string name;
  int rank = 0;
  int ranks = 1;
  std::string transport;
};

class GroupStats {
 public:
  explicit GroupStats(GroupIdentity group) : identity(std::move(group)) {}

  void count(Op op, Route route, std::uint64_t bytes) {
    Counter& counter = at(op, route.path, route.reason);
    counter.calls.fetch_add(1, std::memory_order_relaxed);
    counter.bytes.fetch_add(bytes, std::memory_order_relaxed);
  }

  struct Row {
    Op op;
    Route route;
    std::uint64_t calls;
    std::uint64_t bytes;  // of the caller's tensors on this rank
  };
  /// One row for each way that was taken at least once.
  std::vector<Row> rows() const;
  void reset();

  const GroupIdentity identity;

 private:
  struct Counter {
    std::atomic<std::uint64_t> calls{0};
    std::atomic<std::uint64_t> bytes{0};
  };
  Counter& at(Op op, Path path, Reason reason) {
    return counters_[(static_cast<std::size_t>(op) * paths + static_cast<std::size_t>(path)) *
                         reasons +
                     static_cast<std::size_t>(reason)];
  }
  std::array<Counter, ops * paths * reasons> counters_;
};

}  // namespace cais::pytorch
