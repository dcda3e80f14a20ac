// runtime/shm/group_memory.hpp — one rank's view of the memory that its group shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "io/shm/segment.hpp"
#include "runtime/shm/layout.hpp"

namespace cais::runtime::shm {

struct GroupShape {
  std::uint16_t ranks;
  std::uint32_t staging_bytes;  // of each rank; a multiple of page_bytes
};

/// What a rank that cannot go on waits for: `*word >= at_least`, which rank `by` brings about
/// (no rank alone, where it is `ranks`), after which `bell` rings.
struct Blocked {
  const std::atomic<std::uint64_t>* word = nullptr;
  std::uint64_t at_least = 0;
  Bell* bell = nullptr;
  std::uint16_t by = 0;

  bool over() const { return word->load(std::memory_order_acquire) >= at_least; }
};

class GroupMemory {
 public:
  static std::size_t bytes_needed(const GroupShape& shape);
  /// `segment` has at least bytes_needed(shape) bytes.
  GroupMemory(io::Segment segment, const GroupShape& shape);

  const GroupShape& shape() const { return shape_; }
  Header& header() const { return *header_; }
  Arrival& arrival(std::uint64_t op_seq, std::size_t rank) const {
    return arrivals_[op_seq % arrival_generations * shape_.ranks + rank];
  }
  wire::CommDescriptor& descriptor(std::uint64_t op_seq, std::size_t rank) const {
    return descriptors_[op_seq % arrival_generations * shape_.ranks + rank].descriptor;
  }
  Progress& progress(std::size_t rank) const { return progress_[rank]; }
  Claim& claim(std::size_t range) const { return claims_[range]; }
  Done& done() const { return *done_; }
  std::byte* staging(std::size_t rank) const { return staging_ + rank * shape_.staging_bytes; }

  /// Stores `value` for others to see, and wakes those who sleep until it is there.
  static void publish(std::atomic<std::uint64_t>& word, std::uint64_t value, Bell& bell) {
    // Sequentially consistent on both sides (see sleep): either we see the sleeper, or it sees
    // the value.
    word.store(value, std::memory_order_seq_cst);
    if (bell.sleepers.load(std::memory_order_seq_cst) != 0) ring(bell);
  }
  static void ring(Bell& bell);
  /// Sleeps until `blocked` may be over, the group has failed, or `limit` has passed.
  void sleep(const Blocked& blocked, Duration limit) const;

  /// Ends the group with `error`, unless it has ended already, and wakes all who sleep.
  void fail(const Error& error) const;
  bool failed() const { return header_->failed.load(std::memory_order_acquire) != 0; }
  /// Why the group ended; `failed()` must be true.
  Error failure() const;

 private:
  io::Segment segment_;
  GroupShape shape_;
  Header* header_;
  Arrival* arrivals_;
  ArrivalDescriptor* descriptors_;
  Progress* progress_;
  Claim* claims_;
  Done* done_;
  std::byte* staging_;
};

}  // namespace cais::runtime::shm
