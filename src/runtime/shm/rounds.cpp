// The rounds of an op: fill a staging buffer, consume those of the others. There are several, so
// that a rank fills one round while others still consume the one before.
#include <algorithm>
#include <cstring>

#include "base/round_up.hpp"
#include "io/clock.hpp"
#include "numeric/copy.hpp"
#include "runtime/shm/execution.hpp"

namespace cais::runtime::shm {
namespace {

void copy(std::byte* to, const std::byte* from, std::size_t bytes, bool past_cache) {
  past_cache ? numeric::copy_stream(to, from, bytes) : void(std::memcpy(to, from, bytes));
}

}  // namespace

static_assert(ranks_max * line_bytes * staging_buffers_min <= 2 * page_bytes,
              "a line of every rank's unit fits into the smallest buffer");

/// Copies to memory that others have read, and will read next.
void Execution::stage(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes < WritePolicy::timed_bytes_min) {
    std::memcpy(to, from, bytes);
    return;
  }
  const WritePolicy::Way way = write_policy_.choose(bytes);
  const Instant begun = io::now();
  copy(to, from, bytes, way == WritePolicy::Way::past_cache);
  write_policy_.took(bytes, way, io::now() - begun);
}

/// The same but for `own`, a part that nobody else wants.
void Execution::stage_all_but(Slice own, std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::uint64_t after = own.offset + own.bytes;
  stage(to, from, own.offset);
  stage(to + after, from + after, bytes - after);
}

/// Shows the others that one more round is done.
void Execution::advance_to(std::atomic<std::uint64_t> Progress::*counter, std::uint32_t rounds) {
  Progress& own = memory_.progress(rank_);
  GroupMemory::publish(own.*counter, base_round_ + rounds, own.bell);
}

void Execution::write_out(std::byte* to, const std::byte* from, std::size_t bytes) const {
  if (to == from) return;
  copy(to, from, bytes, streams_);
}

/// Cuts the op into rounds, whose slices of all units fit into a buffer, and the staging memory
/// into buffers: large ones for ops of a single round, whatever their size, or those of longer ops.
void Execution::set_rounds() {
  const std::uint64_t staging_bytes = memory_.shape().staging_bytes;
  const bool single = plan_->units * plan_->unit_bytes <= tuning_.single_round_bytes;
  const std::uint64_t buffer_bytes =
      std::min<std::uint64_t>(single ? tuning_.single_round_bytes : tuning_.round_bytes,
                              staging_bytes / staging_buffers_min);
  slice_bytes_ = std::min(buffer_bytes / plan_->units / line_bytes * line_bytes,
                          round_up(plan_->unit_bytes, line_bytes));
  rounds_ = static_cast<std::uint32_t>((plan_->unit_bytes + slice_bytes_ - 1) / slice_bytes_);
  if (buffer_bytes == buffer_bytes_) return;
  // The new buffers overlap the old ones: what those hold must have been consumed.
  consumed_before_ = base_round_;
  buffer_bytes_ = buffer_bytes;
  buffers_ = std::min<std::uint64_t>(staging_bytes / buffer_bytes, staging_buffers_max);
}

std::byte* Execution::staging(std::size_t rank, std::uint32_t round) const {
  return memory_.staging(rank) + (base_round_ + round) % buffers_ * buffer_bytes_;
}

Execution::Slice Execution::slice_of(std::uint32_t round) const {
  const std::uint64_t offset = round * slice_bytes_;
  return {offset, std::min(slice_bytes_, plan_->unit_bytes - offset)};
}

bool Execution::run_rounds() {
  if (way_ == Way::split_reduce) return run_split_rounds();
  const bool stages = contributes_ && mapped_send_[rank_] == nullptr;
  while (consumed_ < rounds_) {
    while (stages && filled_ < rounds_ && filled_ < consumed_ + buffers_ && may_fill()) fill();
    if (stages && filled_ == consumed_) return false;  // blocked by may_fill
    if (receives_ && !consume()) return false;
    ++consumed_;
    claimed_ = false;
    cursor_ = 0;
    advance_to(&Progress::consumed, consumed_);
  }
  return true;
}

/// Whether all have consumed what the staging buffer holds.
bool Execution::may_fill() {
  const std::uint64_t round = base_round_ + filled_ + 1;
  const std::uint64_t consumed = std::max(round - std::min(round, buffers_), consumed_before_);
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    Progress& other = memory_.progress(rank);
    if (!block_on(other.consumed, consumed, other.bell, rank)) return false;
  }
  return true;
}

void Execution::fill() {
  const Slice slice = slice_of(filled_);
  std::byte* buffer = staging(rank_, filled_);
  for (std::uint32_t unit = 0; unit < plan_->units; ++unit) {
    if (plan_->units > 1 && unit == rank_) continue;  // nobody else wants our own unit
    stage(buffer + unit * slice_bytes_, send_ + unit * plan_->unit_bytes + slice.offset,
          slice.bytes);
  }
  advance_to(&Progress::filled, ++filled_);
}

bool Execution::all_filled() {
  const std::uint64_t filled = base_round_ + consumed_ + 1;
  for (; cursor_ < ranks_; ++cursor_) {
    if (cursor_ == rank_ || mapped_send_[cursor_] != nullptr) continue;
    if (!plan_->contributes_payload(Rank(static_cast<std::uint16_t>(cursor_)))) continue;
    Progress& other = memory_.progress(cursor_);
    if (!block_on(other.filled, filled, other.bell, cursor_)) return false;
  }
  return true;
}

bool Execution::consume() {
  if (!all_filled()) return false;
  if (way_ == Way::shared_reduce || way_ == Way::mapped_reduce) return consume_shared();
  deliver(slice_of(consumed_));
  return true;
}

/// Where `rank` has its contribution to the slice of `unit`, in the round that is being consumed.
const std::byte* Execution::source(std::size_t rank, std::uint32_t unit, Slice slice) const {
  const std::uint64_t offset = unit * plan_->unit_bytes + slice.offset;
  if (rank == rank_) return send_ + offset;
  if (way_ == Way::in_arrival) return memory_.arrival(operation_->op_seq, rank).payload + offset;
  if (mapped_send_[rank] != nullptr) return mapped_send_[rank] + offset;
  return staging(rank, consumed_) + unit * slice_bytes_;
}

void Execution::reduce(std::span<std::byte* const> outputs,
                       std::span<const std::byte* const> inputs, std::size_t bytes,
                       bool past_cache) const {
  const std::size_t count = bytes / size_of(plan_->dtype);
  past_cache ? reducer_->stream(outputs, inputs, count) : (*reducer_)(outputs, inputs, count);
}

/// Takes what the plan delivers to this rank of the slice.
void Execution::deliver(Slice slice) {
  const std::uint32_t unit = plan_->units == 1 ? 0 : std::uint32_t{rank_};
  if (plan_->combine == nir::Combine::reduce) {
    std::array<const std::byte*, ranks_max> inputs;
    for (std::size_t rank = 0; rank < ranks_; ++rank) inputs[rank] = source(rank, unit, slice);
    std::byte* const output = recv_ + slice.offset;
    reduce({&output, 1}, {inputs.data(), ranks_}, slice.bytes, streams_);
  } else if (plan_->combine == nir::Combine::concat) {
    for (std::size_t i = 0; i < ranks_; ++i) {
      const std::size_t rank = (rank_ + i) % ranks_;  // not all from the same one at once
      write_out(recv_ + rank * plan_->unit_bytes + slice.offset, source(rank, unit, slice),
                slice.bytes);
    }
  } else {
    write_out(recv_ + slice.offset, source(plan_->root, unit, slice), slice.bytes);
  }
}

/// A rank whose tensor the others read in place stays until they have.
bool Execution::may_leave() {
  const bool read_in_place =
      contributes_ && mapped_send_[rank_] != nullptr && way_ == Way::exchange;
  if (!read_in_place) return true;
  for (; cursor_ < ranks_; ++cursor_) {
    Progress& other = memory_.progress(cursor_);
    if (!block_on(other.consumed, base_round_ + rounds_, other.bell, cursor_)) return false;
  }
  return true;
}

}  // namespace cais::runtime::shm
