// An all-reduce of more ranks than there are cores, whose sum runs from rank to rank: a rank that
// is next adds its tensor to the running sum of a block; one that comes before its turn stages its
// part, and whoever has the turn before it adds that, too. Nobody waits for an order of ranks that
// the kernel may not choose, and where it does choose it, a tensor is read once and staged nowhere.
#include <array>
#include <cstring>

#include "runtime/shm/execution.hpp"

namespace cais::runtime::shm {
namespace {

/// Turn words: whose part is to be added next, and whether somebody is at it.
constexpr std::uint64_t idle(std::uint64_t rank) { return 2 * rank; }
constexpr std::uint64_t adding(std::uint64_t rank) { return 2 * rank + 1; }

}  // namespace

Execution::Block Execution::block_of(std::uint32_t round, std::uint32_t index) const {
  const Slice slice = slice_of(round);
  const std::uint64_t offset = index * block_bytes_;
  const std::size_t buffer = (base_round_ + round) % buffers_;
  return Block{&memory_.running_sum(buffer, index),
               base_round_ + round + 1,
               {slice.offset + offset, std::min(block_bytes_, slice.bytes - offset)},
               staging(0, round) + offset,
               offset};
}

std::uint32_t Execution::blocks_of(std::uint32_t round) const {
  return static_cast<std::uint32_t>((slice_of(round).bytes + block_bytes_ - 1) / block_bytes_);
}

/// Contributes to round filled_, block by block.
bool Execution::add_round() {
  const std::uint32_t blocks = blocks_of(filled_);
  for (; block_ < blocks; ++block_) {
    if (!contribute(block_of(filled_, block_))) return false;
  }
  block_ = 0;
  ++filled_;
  return true;
}

/// Adds to the sum of the block, or stages; false while our turn is about to come.
bool Execution::contribute(const Block& block) {
  RunningSum& state = *block.state;
  while (!take_turn(block, rank_)) {
    const bool soon = state.turn.load(std::memory_order_acquire) ==
                      tagged(block.tag, adding(rank_ - std::uint64_t{1}));
    if (!soon) {
      std::memcpy(staging(rank_, filled_) + block.offset, send_ + block.slice.offset,
                  block.slice.bytes);
      // Sequentially consistent on both sides (see add_from): we see the turn, or who hands it on
      // sees our part.
      state.deposited.fetch_or(std::uint64_t{1} << rank_, std::memory_order_seq_cst);
      if (!take_turn(block, rank_)) return true;
      break;
    }
    if (!block_on(state.turn, tagged(block.tag, idle(rank_)), memory_.done().bell, ranks_)) {
      return false;
    }
  }
  add_from(block, rank_);
  return true;
}

bool Execution::take_turn(const Block& block, std::size_t rank) const {
  std::uint64_t turn = block.state->turn.load(std::memory_order_seq_cst);
  const bool fresh = turn < tagged(block.tag, 0) && rank == 0;  // nobody has begun the block
  if (!fresh && turn != tagged(block.tag, idle(rank))) return false;
  return block.state->turn.compare_exchange_strong(turn, tagged(block.tag, adding(rank)),
                                                   std::memory_order_seq_cst);
}

/// Adds the parts of `rank`, whose turn we have taken, and of those behind it that are there.
void Execution::add_from(const Block& block, std::size_t rank) {
  RunningSum& state = *block.state;
  do {
    const std::size_t next = add_present(block, rank);
    if (next == ranks_) {
      state.deposited.store(0, std::memory_order_relaxed);
      written_[(base_round_ + filled_) % buffers_] |= 1u << block_;
    }
    GroupMemory::publish(state.turn, tagged(block.tag, idle(next)), memory_.done().bell);
    rank = next;
  } while (rank < ranks_ && (state.deposited.load(std::memory_order_seq_cst) >> rank & 1) != 0 &&
           take_turn(block, rank));
}

/// One pass over the block; the rank that is next after it.
std::size_t Execution::add_present(const Block& block, std::size_t rank) {
  const std::uint64_t deposited = block.state->deposited.load(std::memory_order_acquire);
  std::array<const std::byte*, ranks_max + 1> inputs;
  std::size_t count = 0;
  if (rank > 0) inputs[count++] = block.sum;
  for (; rank < ranks_ && (rank == rank_ || (deposited >> rank & 1) != 0); ++rank) {
    inputs[count++] =
        rank == rank_ ? send_ + block.slice.offset : staging(rank, filled_) + block.offset;
  }
  const bool last = rank == ranks_;
  if (count == 1 && !last) {
    std::memcpy(block.sum, inputs[0], block.slice.bytes);
    return rank;
  }
  const std::array<std::byte*, 2> outputs{block.sum, recv_ + block.slice.offset};
  const numeric::Reducer& reducer = last ? *reducer_ : *partial_reducer_;
  reducer({outputs.data(), last ? 2u : 1u}, {inputs.data(), count},
          block.slice.bytes / size_of(plan_->dtype));
  return rank;
}

/// Takes the sums of round consumed_, but for those that this rank has written itself.
bool Execution::take_sums() {
  const std::uint32_t blocks = blocks_of(consumed_);
  std::uint32_t& written = written_[(base_round_ + consumed_) % buffers_];
  for (; cursor_ < blocks; ++cursor_) {
    if ((written >> cursor_ & 1) != 0) continue;
    const Block block = block_of(consumed_, static_cast<std::uint32_t>(cursor_));
    if (!block_on(block.state->turn, tagged(block.tag, idle(ranks_)), memory_.done().bell,
                  ranks_)) {
      return false;
    }
    write_out(recv_ + block.slice.offset, block.sum, block.slice.bytes);
  }
  written = 0;
  return true;
}

}  // namespace cais::runtime::shm
