// runtime/shm/execution.hpp — one collective at a time over the memory of a group, as a resumable
// state machine: it never waits, and whoever drives it may change between two calls.
//
// The ranks do the switch's work themselves. Which collective it is does not matter here, only the
// plan: how contributions combine, and to whom the outcome is delivered. In every op
//
//   1. a rank arrives: it publishes the op's number and the hash of its descriptor (P12), and with
//      them its payload where that is small, or else the place of its tensors in its arena;
//   2. in rounds, each rank fills a buffer of its staging memory with its part of the op, and takes
//      from the buffers of the others what the plan delivers to it. A tensor that the peers have
//      mapped is read where it lies, in one round, and its owner waits until all have done so;
//   3. an all-reduce of many ranks is reduced once, not by each: the pieces of a round are claimed
//      by whichever ranks have a core (shared_reduce.cpp), or, where a round is much work, each
//      rank reduces its own part (split_reduce.cpp). Where all tensors are mapped, the result is
//      written to all of them in place.
//
// A sum is always taken in rank order, so that its bits do not depend on the way that was taken.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "numeric/reduce.hpp"
#include "runtime/collective.hpp"
#include "runtime/shm/group.hpp"
#include "runtime/shm/tuning.hpp"
#include "runtime/shm/write_policy.hpp"

namespace cais::runtime::shm {

class Execution {
 public:
  /// `group` must outlive it.
  Execution(const Group& group, const Tuning& tuning);

  /// Arrives at the op; the one before must be done.
  void begin(const Operation& operation);
  /// Goes as far as it can. True when this rank has done its part and got its due, and nobody needs
  /// its tensors any more. Otherwise `blocked()` tells what is waited for, or the group has failed.
  bool advance();
  const Blocked& blocked() const { return blocked_; }
  /// Whether all ranks have arrived at the op.
  bool all_are_here() const { return stage_ != Stage::gather; }
  /// Ranks that have not arrived at the op, as a set.
  std::uint64_t missing_ranks() const;

  /// Whether ranks can reduce so; from facts that all share.
  static bool can_reduce(ReduceOp op, DType dtype);

 private:
  enum class Stage : std::uint8_t { gather, rounds, leave };
  enum class Way : std::uint8_t {
    in_arrival,     // every payload lies in its rank's arrival
    exchange,       // each rank consumes what is delivered to it
    shared_reduce,  // ranks claim pieces of each round, and copy the result out
    split_reduce,   // each rank reduces its part of each round, and copies those of others out
    mapped_reduce,  // ranks claim pieces, and write the result to all tensors
  };
  /// What a round covers of each unit.
  struct Slice {
    std::uint64_t offset;
    std::uint64_t bytes;
  };

  // arrive.cpp
  void arrive();
  void stage_payload(std::byte* to);
  void publish_descriptor();
  std::uint64_t received_bytes() const;
  std::uint64_t place_in_arena(const void* tensor, std::uint64_t bytes) const;
  bool all_arrived();
  bool all_agree();
  void choose_way();
  bool splits() const;
  bool reduces_for_all() const;

  // rounds.cpp
  bool run_rounds();
  bool may_fill();
  void fill();
  bool all_filled();
  bool consume();
  void deliver(Slice slice);
  void reduce(std::span<std::byte* const> outputs, std::span<const std::byte* const> inputs,
              std::size_t bytes, bool past_cache) const;
  void stage(std::byte* to, const std::byte* from, std::size_t bytes);
  void stage_all_but(Slice own, std::byte* to, const std::byte* from, std::size_t bytes);
  void advance_to(std::atomic<std::uint64_t> Progress::*counter, std::uint32_t rounds);
  void write_out(std::byte* to, const std::byte* from, std::size_t bytes) const;
  bool may_leave();
  void set_rounds();
  std::byte* staging(std::size_t rank, std::uint32_t round) const;
  Slice slice_of(std::uint32_t round) const;
  const std::byte* source(std::size_t rank, std::uint32_t unit, Slice slice) const;

  // shared_reduce.cpp
  struct Pieces {
    std::uint64_t round;
    std::uint64_t bytes;        // of the whole
    std::uint64_t piece_bytes;  // of all but the last
    std::uint32_t count;
    std::uint32_t ranges;
  };
  bool consume_shared();
  Pieces pieces_of(std::uint64_t bytes) const;
  std::optional<std::uint32_t> claim(const Pieces& pieces, std::uint32_t range);
  void reduce_claimed(const Pieces& pieces, Slice slice);
  void reduce_piece(Slice slice, Slice piece);
  bool all_reduced(const Pieces& pieces);

  // split_reduce.cpp
  bool run_split_rounds();
  Slice part_of(std::size_t rank, std::uint32_t round) const;
  void fill_split();
  void reduce_part();
  void reduce_to_both(std::byte* own, std::byte* shared, std::span<const std::byte*> inputs,
                      std::uint64_t bytes);
  void take_parts();
  bool all_reached(std::atomic<std::uint64_t> Progress::*counter, std::uint64_t round);

  bool block_on(const std::atomic<std::uint64_t>& word, std::uint64_t at_least, Bell& bell,
                std::size_t by);

  const Group& group_;
  const GroupMemory& memory_;
  const std::uint16_t rank_;
  const std::uint16_t ranks_;
  const Tuning tuning_;
  std::array<std::uint64_t, arrival_generations> descriptor_written_{};  // its hash
  WritePolicy write_policy_;

  // The op under way.
  const Operation* operation_ = nullptr;
  const nir::Plan* plan_ = nullptr;
  const std::byte* send_ = nullptr;
  std::byte* recv_ = nullptr;
  std::optional<numeric::Reducer> reducer_;
  Stage stage_ = Stage::gather;
  Way way_ = Way::in_arrival;
  bool contributes_ = false;
  bool receives_ = false;
  std::size_t cursor_ = 0;  // ranks before it need not be looked at again
  std::array<const std::byte*, ranks_max> mapped_send_{};  // null: not mapped
  std::array<std::byte*, ranks_max> mapped_recv_{};
  Blocked blocked_;

  // Its rounds. Rounds are counted over all ops of the group: the op's first one is base_round_.
  std::uint64_t base_round_ = 0;
  std::uint64_t slice_bytes_ = 0;   // of each unit, in a round
  std::uint64_t buffer_bytes_ = 0;  // of a staging buffer; kept from the op before
  std::uint64_t buffers_ = 0;
  std::uint64_t consumed_before_ = 0;  // all must have consumed so far before a round is filled
  bool streams_ = false;               // results are written past the cache
  std::uint32_t rounds_ = 0;
  std::uint32_t filled_ = 0;
  std::uint32_t consumed_ = 0;
  std::uint32_t reduced_ = 0;
  bool claimed_ = false;  // nothing is left to claim in the round that is being consumed
};

}  // namespace cais::runtime::shm
