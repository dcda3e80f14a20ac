// An all-reduce of large tensors that is split: a rank stages all of a round but its own part,
// reduces that part from its tensor and what the others have staged, and takes their parts as they
// have reduced them. The own part, which nobody else needs, is never copied, and its result lies
// where it would have been staged. In each of its turns on a core a rank does what it can of the
// next round's filling, this one's reducing and the last one's taking.
#include <algorithm>
#include <cstring>

#include "numeric/copy.hpp"
#include "runtime/shm/execution.hpp"

namespace cais::runtime::shm {
namespace {

// Filled ahead of what is reduced: more would push what is read next out of the cache.
constexpr std::uint32_t rounds_ahead = 1;

constexpr std::uint64_t piece_bytes_past_cache = 8 * 1024;

}  // namespace

/// What `rank` reduces of the round; offset in the op.
Execution::Slice Execution::part_of(std::size_t rank, std::uint32_t round) const {
  const Slice slice = slice_of(round);
  const std::uint64_t part_bytes = (slice.bytes / ranks_ / line_bytes + 1) * line_bytes;
  const std::uint64_t begin = std::min(rank * part_bytes, slice.bytes);
  return {slice.offset + begin, std::min(part_bytes, slice.bytes - begin)};
}

bool Execution::run_split_rounds() {
  while (consumed_ < rounds_) {
    bool moved = false;
    while (filled_ < rounds_ && filled_ <= reduced_ + rounds_ahead &&
           filled_ < consumed_ + buffers_ && may_fill()) {
      fill_split();
      moved = true;
    }
    if (reduced_ < filled_ && all_reached(&Progress::filled, reduced_)) {
      reduce_part();
      moved = true;
    }
    if (consumed_ < reduced_ && all_reached(&Progress::reduced, consumed_)) {
      take_parts();
      moved = true;
    }
    if (!moved) return false;
  }
  return true;
}

/// Whether all ranks have done the round, by `counter`.
bool Execution::all_reached(std::atomic<std::uint64_t> Progress::*counter, std::uint64_t round) {
  for (std::size_t i = 1; i < ranks_; ++i) {
    const std::size_t rank = (rank_ + i) % ranks_;
    Progress& other = memory_.progress(rank);
    if (!block_on(other.*counter, base_round_ + round + 1, other.bell, rank)) return false;
  }
  return true;
}

void Execution::fill_split() {
  const Slice slice = slice_of(filled_);
  const Slice own = part_of(rank_, filled_);
  stage_all_but({own.offset - slice.offset, own.bytes}, staging(rank_, filled_),
                send_ + slice.offset, slice.bytes);
  advance_to(&Progress::filled, ++filled_);
}

void Execution::reduce_part() {
  const Slice part = part_of(rank_, reduced_);
  const std::uint64_t in_buffer = part.offset - slice_of(reduced_).offset;
  std::array<const std::byte*, ranks_max> inputs;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    inputs[rank] = rank == rank_ ? send_ + part.offset : staging(rank, reduced_) + in_buffer;
  }
  reduce_to_both(recv_ + part.offset, staging(rank_, reduced_) + in_buffer, {inputs.data(), ranks_},
                 part.bytes);
  advance_to(&Progress::reduced, ++reduced_);
}

/// Reduces for this rank, and for the others to take.
void Execution::reduce_to_both(std::byte* own, std::byte* shared,
                               std::span<const std::byte*> inputs, std::uint64_t bytes) {
  if (write_policy_.better() == WritePolicy::Way::through_cache) {
    if (bytes > 0) reduce(std::array{own, shared}, inputs, bytes, false);
    return;
  }
  // Only what others take goes past the cache: while the result is still in the nearest one.
  for (std::uint64_t done = 0; done < bytes; done += piece_bytes_past_cache) {
    const std::uint64_t piece = std::min(piece_bytes_past_cache, bytes - done);
    std::byte* const output = own + done;
    reduce({&output, 1}, inputs, piece, false);
    numeric::copy_stream(shared + done, output, piece);
    for (const std::byte*& input : inputs) input += piece;
  }
}

void Execution::take_parts() {
  const std::uint64_t begin = slice_of(consumed_).offset;
  for (std::size_t i = 1; i < ranks_; ++i) {
    const std::size_t rank = (rank_ + i) % ranks_;
    const Slice part = part_of(rank, consumed_);
    write_out(recv_ + part.offset, staging(rank, consumed_) + (part.offset - begin), part.bytes);
  }
  advance_to(&Progress::consumed, ++consumed_);
}

}  // namespace cais::runtime::shm
