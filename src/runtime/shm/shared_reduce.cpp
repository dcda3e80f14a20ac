// An all-reduce that is reduced once for all: the pieces of a round are claimed by whichever ranks
// have a core. Where ranks outnumber cores, those that run do the work of those that do not, and an
// op costs each rank one turn on a core instead of two.
#include <algorithm>
#include <cstring>

#include "base/round_up.hpp"
#include "runtime/shm/execution.hpp"

namespace cais::runtime::shm {
namespace {

constexpr std::uint64_t count_mask = (std::uint64_t{1} << count_bits) - 1;

/// The count under `round`'s tag: 0 when the word still stands at an older round.
std::uint64_t count_of(std::uint64_t word, std::uint64_t round) {
  return word >> count_bits == round ? word & count_mask : 0;
}

}  // namespace

bool Execution::consume_shared() {
  const Slice slice = slice_of(consumed_);
  const Pieces pieces = pieces_of(slice.bytes);
  if (!claimed_) {
    reduce_claimed(pieces, slice);
    claimed_ = true;
  }
  if (!all_reduced(pieces)) return false;
  if (way_ == Way::shared_reduce) {
    write_out(recv_ + slice.offset, staging(0, consumed_), slice.bytes);
  }
  return true;
}

Execution::Pieces Execution::pieces_of(std::uint64_t bytes) const {
  Pieces pieces{};
  pieces.round = base_round_ + consumed_ + 1;  // 0 is what the words hold before the first
  pieces.bytes = bytes;
  // A few pieces for each range, so that who is late leaves little undone.
  const std::uint64_t wanted = round_up(bytes / (4 * tuning_.ranges), line_bytes);
  pieces.piece_bytes =
      std::clamp<std::uint64_t>(wanted, tuning_.piece_bytes_min, tuning_.piece_bytes_max);
  // Counts have few bits; a huge tensor has larger pieces.
  pieces.piece_bytes =
      std::max(pieces.piece_bytes, round_up(bytes >> (count_bits - 1), page_bytes));
  pieces.count = static_cast<std::uint32_t>((bytes + pieces.piece_bytes - 1) / pieces.piece_bytes);
  pieces.ranges = std::min(tuning_.ranges, pieces.count);
  return pieces;
}

/// A piece of the range that nobody else has, or will have.
std::optional<std::uint32_t> Execution::claim(const Pieces& pieces, std::uint32_t range) {
  const std::uint32_t begin = pieces.count * range / pieces.ranges;
  const std::uint32_t end = pieces.count * (range + 1) / pieces.ranges;
  std::atomic<std::uint64_t>& next = memory_.claim(range).next;
  std::uint64_t word = next.load(std::memory_order_relaxed);
  while (word >> count_bits <= pieces.round) {
    const std::uint64_t taken = count_of(word, pieces.round);
    if (begin + taken >= end) return std::nullopt;
    if (next.compare_exchange_weak(word, tagged(pieces.round, taken + 1), std::memory_order_acq_rel,
                                   std::memory_order_relaxed)) {
      return begin + static_cast<std::uint32_t>(taken);
    }
  }
  return std::nullopt;
}

void Execution::reduce_claimed(const Pieces& pieces, Slice slice) {
  std::uint64_t reduced = 0;
  for (std::uint32_t i = 0; i < pieces.ranges; ++i) {
    const std::uint32_t range = (rank_ + i) % pieces.ranges;  // the own one first
    while (const auto index = claim(pieces, range)) {
      const std::uint64_t offset = *index * pieces.piece_bytes;
      reduce_piece(slice, {offset, std::min(pieces.piece_bytes, pieces.bytes - offset)});
      ++reduced;
    }
  }
  if (reduced == 0) return;
  Done& done = memory_.done();
  std::uint64_t word = done.pieces.load(std::memory_order_relaxed);
  std::uint64_t sum = 0;
  do {
    sum = count_of(word, pieces.round) + reduced;
  } while (!done.pieces.compare_exchange_weak(
      word, tagged(pieces.round, sum), std::memory_order_seq_cst, std::memory_order_relaxed));
  if (sum == pieces.count && done.bell.sleepers.load(std::memory_order_seq_cst) != 0) {
    GroupMemory::ring(done.bell);
  }
}

/// Reduces the bytes `piece` of the slice into rank 0's staging buffer, or into all tensors.
void Execution::reduce_piece(Slice slice, Slice piece) {
  std::array<const std::byte*, ranks_max> inputs;
  std::array<std::byte*, ranks_max> outputs;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    inputs[rank] = source(rank, 0, slice) + piece.offset;
    outputs[rank] = way_ == Way::mapped_reduce ? mapped_recv_[rank] + slice.offset + piece.offset
                                               : staging(0, consumed_) + piece.offset;
  }
  const bool to_all = way_ == Way::mapped_reduce;
  const bool past_cache =
      to_all ? streams_ : write_policy_.better() == WritePolicy::Way::past_cache;
  reduce({outputs.data(), to_all ? ranks_ : 1u}, {inputs.data(), ranks_}, piece.bytes, past_cache);
}

bool Execution::all_reduced(const Pieces& pieces) {
  Done& done = memory_.done();
  return block_on(done.pieces, tagged(pieces.round, pieces.count), done.bell, ranks_);
}

}  // namespace cais::runtime::shm
