// How an op begins: the ranks arrive, see that they have called the same collective, and take the
// same way through it.
#include <algorithm>
#include <cstring>

#include "io/shm/arena.hpp"
#include "runtime/shm/execution.hpp"

namespace cais::runtime::shm {

Execution::Execution(const Group& group, const Tuning& tuning)
    : group_(group),
      memory_(group.memory),
      rank_(group.rank),
      ranks_(group.ranks()),
      tuning_(tuning) {}

bool Execution::can_reduce(ReduceOp op, DType dtype) {
  return numeric::Reducer::find({.op = op, .input = dtype, .output = dtype}).has_value();
}

void Execution::begin(const Operation& operation) {
  operation_ = &operation;
  plan_ = &operation.plan;
  const Collective& collective = operation.collective;
  recv_ = static_cast<std::byte*>(collective.recv);
  // Where the root's unit goes to all, the root's tensor is the one that the others receive into.
  const bool from_recv =
      plan_->combine == nir::Combine::route && plan_->deliver == nir::Deliver::all;
  send_ = from_recv ? recv_ : static_cast<const std::byte*>(collective.send);
  contributes_ = plan_->contributes_payload(Rank(rank_));
  receives_ = plan_->unit_bytes != 0 &&
              plan_->receives_payload(Rank(rank_), plan_->units == 1 ? 0 : std::uint32_t{rank_});
  if (plan_->reduce_op != ReduceOp::none) {
    reducer_ = numeric::Reducer::find({.op = plan_->reduce_op,
                                       .input = plan_->dtype,
                                       .output = plan_->dtype,
                                       .divisor = plan_->ranks});
    CAIS_CHECK(reducer_.has_value());
  }
  stage_ = Stage::gather;
  cursor_ = 0;
  rounds_ = filled_ = reduced_ = consumed_ = 0;
  streams_ = false;
  claimed_ = false;
  arrive();
}

bool Execution::advance() {
  if (stage_ == Stage::gather) {
    if (!all_arrived()) return false;
    if (!all_agree()) return false;
    choose_way();
    stage_ = Stage::rounds;
    cursor_ = 0;
  }
  if (stage_ == Stage::rounds) {
    if (way_ == Way::in_arrival) {
      if (receives_) deliver({0, plan_->unit_bytes});
      return true;
    }
    if (!run_rounds()) return false;
    stage_ = Stage::leave;
    cursor_ = 0;
  }
  if (!may_leave()) return false;
  base_round_ += rounds_;
  return true;
}

void Execution::arrive() {
  const std::uint64_t op_seq = operation_->op_seq;
  Arrival& arrival = memory_.arrival(op_seq, rank_);
  arrival.descriptor_hash = operation_->descriptor_hash.value;
  publish_descriptor();
  const std::uint64_t payload_bytes = plan_->units * plan_->unit_bytes;
  way_ = payload_bytes <= tuning_.inline_bytes ? Way::in_arrival : Way::exchange;
  bool mapped = false;
  if (way_ == Way::in_arrival) {
    if (contributes_) stage_payload(arrival.payload);
  } else {
    arrival.mapped.send_offset_plus_1 = contributes_ ? place_in_arena(send_, payload_bytes) : 0;
    arrival.mapped.recv_offset_plus_1 = receives_ ? place_in_arena(recv_, received_bytes()) : 0;
    mapped = arrival.mapped.send_offset_plus_1 != 0;
  }
  GroupMemory::publish(arrival.op, op_seq + 1, memory_.progress(rank_).bell);
  if (way_ == Way::exchange && contributes_ && !mapped) {
    // Others will read what we stage, whatever they do themselves: no need to wait for them.
    set_rounds();
    if (may_fill()) splits() ? fill_split() : fill();
  }
}

/// The units that others want: of several, all but our own.
void Execution::stage_payload(std::byte* to) {
  if (plan_->units == 1) return stage(to, send_, plan_->unit_bytes);
  stage_all_but({rank_ * plan_->unit_bytes, plan_->unit_bytes}, to, send_,
                plan_->units * plan_->unit_bytes);
}

void Execution::publish_descriptor() {
  const std::uint64_t op_seq = operation_->op_seq;
  std::uint64_t& written = descriptor_written_[op_seq % arrival_generations];
  if (written == operation_->descriptor_hash.value) return;
  memory_.descriptor(op_seq, rank_) = operation_->callers().descriptor;
  written = operation_->descriptor_hash.value;
}

std::uint64_t Execution::received_bytes() const {
  return (plan_->combine == nir::Combine::concat ? plan_->ranks : 1u) * plan_->unit_bytes;
}

std::uint64_t Execution::place_in_arena(const void* tensor, std::uint64_t bytes) const {
  if (group_.peers[rank_].arena == nullptr) return 0;
  const auto offset = io::process_arena()->offset_of(tensor, bytes);
  return offset ? *offset + 1 : 0;
}

bool Execution::all_arrived() {
  const std::uint64_t op = operation_->op_seq + 1;
  for (; cursor_ < ranks_; ++cursor_) {
    const Arrival& arrival = memory_.arrival(op - 1, cursor_);
    if (!block_on(arrival.op, op, memory_.progress(cursor_).bell, cursor_)) return false;
  }
  return true;
}

std::uint64_t Execution::missing_ranks() const {
  std::uint64_t missing = 0;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    const std::uint64_t op = operation_->op_seq + 1;
    if (memory_.arrival(op - 1, rank).op.load(std::memory_order_acquire) < op) {
      missing |= std::uint64_t{1} << rank;
    }
  }
  return missing;
}

/// P12: on a mismatch the group fails, at all ranks, with both descriptors.
bool Execution::all_agree() {
  const std::uint64_t op_seq = operation_->op_seq;
  const std::uint64_t ours = operation_->descriptor_hash.value;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    if (memory_.arrival(op_seq, rank).descriptor_hash == ours) continue;
    memory_.fail(Error{ErrorCode::mismatch,
                       wire::explain_mismatch(
                           operation_->callers().descriptor, Rank(group_.peers[rank_].outer_rank),
                           memory_.descriptor(op_seq, rank), Rank(group_.peers[rank].outer_rank))});
    return false;
  }
  return true;
}

/// Whether an all-reduce that is not mapped is split: known before any rank has arrived.
bool Execution::splits() const {
  return reduces_for_all() && plan_->unit_bytes > tuning_.split_bytes;
}

bool Execution::reduces_for_all() const {
  return plan_->combine == nir::Combine::reduce && plan_->deliver == nir::Deliver::all;
}

void Execution::choose_way() {
  if (way_ == Way::in_arrival) return;
  bool all_send_mapped = true;
  bool all_recv_mapped = true;
  for (std::uint16_t rank = 0; rank < ranks_; ++rank) {
    const MappedTensors mapped = memory_.arrival(operation_->op_seq, rank).mapped;
    const auto& arena = group_.peers[rank].arena;
    mapped_send_[rank] =
        mapped.send_offset_plus_1 == 0 ? nullptr : arena->data() + (mapped.send_offset_plus_1 - 1);
    mapped_recv_[rank] =
        mapped.recv_offset_plus_1 == 0 ? nullptr : arena->data() + (mapped.recv_offset_plus_1 - 1);
    if (plan_->contributes_payload(Rank(rank))) all_send_mapped &= mapped_send_[rank] != nullptr;
    all_recv_mapped &= mapped_recv_[rank] != nullptr;
  }
  if (reduces_for_all() && all_send_mapped && all_recv_mapped) {
    way_ = Way::mapped_reduce;
  } else if (reduces_for_all()) {
    // Mapped at all ranks or staged by all: in place, a rank would overwrite its tensor before the
    // others have read it there.
    mapped_send_.fill(nullptr);
    all_send_mapped = false;
    way_ = splits() ? Way::split_reduce : Way::shared_reduce;
  }
  if (all_send_mapped) {
    slice_bytes_ = plan_->unit_bytes;
    rounds_ = 1;
  } else if (rounds_ == 0) {
    set_rounds();
  }
  const std::uint64_t tensors = plan_->units * plan_->unit_bytes + received_bytes();
  streams_ = send_ != recv_ && tensors * ranks_ > tuning_.stream_bytes;
}

bool Execution::block_on(const std::atomic<std::uint64_t>& word, std::uint64_t at_least, Bell& bell,
                         std::size_t by) {
  if (word.load(std::memory_order_acquire) >= at_least) return true;
  blocked_ = Blocked{&word, at_least, &bell, static_cast<std::uint16_t>(by)};
  return false;
}

}  // namespace cais::runtime::shm
