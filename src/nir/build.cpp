#include "nir/build.hpp"

#include <algorithm>

namespace cais::nir {
namespace {

/// The type of one unit: the global shape, cut in the shard dim where units are shards.
TensorType unit_type(const wire::CommDescriptor& descriptor) {
  const auto kind = static_cast<OpKind>(descriptor.kind);
  const auto dtype = static_cast<DType>(descriptor.dtype);
  const std::uint64_t elements = descriptor.unit_bytes / size_of(dtype);
  TensorType type{.dtype = dtype, .dims = 1, .shape = {elements}};
  if (descriptor.dims == 0 || (wire::unit_is_shard(kind) && descriptor.shard_dim < 0)) return type;
  type.dims = descriptor.dims;
  std::copy_n(descriptor.shape, descriptor.dims, type.shape.begin());
  if (wire::unit_is_shard(kind)) {
    type.shape[static_cast<std::uint8_t>(descriptor.shard_dim)] /= descriptor.ranks;
  }
  return type;
}

TensorType stacked(const TensorType& unit, std::uint64_t count) {
  TensorType type{.dtype = unit.dtype, .dims = static_cast<std::uint8_t>(unit.dims + 1)};
  type.shape[0] = count;
  std::copy_n(unit.shape.begin(), unit.dims, type.shape.begin() + 1);
  return type;
}

void append_reduction(const wire::CommDescriptor& descriptor, Schedule& schedule) {
  const auto op = static_cast<ReduceOp>(descriptor.reduce_op);
  const auto dtype = static_cast<DType>(descriptor.dtype);
  const auto accumulator = static_cast<DType>(descriptor.accumulator);
  const bool averages = op == ReduceOp::avg;
  schedule.append(Accumulate{averages ? ReduceOp::sum : op, accumulator});
  if (averages) schedule.append(Divide{descriptor.ranks});
  if (accumulator != dtype) schedule.append(Round{dtype});
}

Schedule schedule_of(const wire::CommDescriptor& descriptor) {
  const RankSet all = RankSet::all(descriptor.ranks);
  const RankSet root = RankSet::only(Rank(descriptor.root));
  Schedule schedule;
  switch (static_cast<OpKind>(descriptor.kind)) {
    case OpKind::all_reduce:
      schedule.append(Load{all});
      append_reduction(descriptor, schedule);
      schedule.append(Scatter{all, false});
      break;
    case OpKind::reduce:
      schedule.append(Load{all});
      append_reduction(descriptor, schedule);
      schedule.append(Scatter{root, false});
      break;
    case OpKind::reduce_scatter:
      schedule.append(Load{all});
      append_reduction(descriptor, schedule);
      schedule.append(Scatter{all, true});
      break;
    case OpKind::all_gather:
      schedule.append(Load{all});
      schedule.append(Concatenate{});
      schedule.append(Scatter{all, false});
      break;
    case OpKind::gather:
      schedule.append(Load{all});
      schedule.append(Concatenate{});
      schedule.append(Scatter{root, false});
      break;
    case OpKind::all_to_all:
      schedule.append(Load{all});
      schedule.append(Concatenate{});
      schedule.append(Scatter{all, true});
      break;
    case OpKind::broadcast:
      schedule.append(Load{root});
      schedule.append(Scatter{all, false});
      break;
    case OpKind::scatter:
      schedule.append(Load{root});
      schedule.append(Scatter{all, true});
      break;
    case OpKind::barrier:
      schedule.append(Load{all});
      schedule.append(Join{});
      schedule.append(Scatter{all, false});
      break;
  }
  return schedule;
}

bool concatenates(OpKind kind) {
  return kind == OpKind::all_gather || kind == OpKind::gather || kind == OpKind::all_to_all;
}

}  // namespace

Result<TensorOp> build(const wire::CommDescriptor& descriptor) {
  if (auto valid = wire::validate(descriptor); !valid) return valid.error();
  if (descriptor.shape_of_sum != 0) {
    return Error{ErrorCode::unsupported,
                 "sums are taken flat, in rank order, but the descriptor's shape_of_sum is " +
                     std::to_string(descriptor.shape_of_sum)};
  }
  const auto kind = static_cast<OpKind>(descriptor.kind);
  const TensorType unit = unit_type(descriptor);
  TensorOp op;
  op.kind = kind;
  op.ranks = descriptor.ranks;
  op.units = wire::units_of(kind, descriptor.ranks);
  op.unit_elements = descriptor.unit_bytes / size_of(unit.dtype);
  op.input = op.units == 1 ? unit : stacked(unit, op.units);
  op.output = concatenates(kind) ? stacked(unit, op.ranks) : unit;
  op.shard_dim = descriptor.shard_dim;
  op.guard_bits = descriptor.guard_bits;
  op.schedule = schedule_of(descriptor);
  op.tiling = {descriptor.fragment_bytes, descriptor.chunk_bytes, descriptor.lanes};
  return op;
}

}  // namespace cais::nir
