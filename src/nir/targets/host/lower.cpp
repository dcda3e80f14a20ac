#include "nir/targets/host/lower.hpp"

#include <algorithm>

namespace cais::nir {
namespace {

struct Shape {
  Combine combine;
  Deliver deliver;
};

Shape shape_of(OpKind kind) {
  switch (kind) {
    case OpKind::all_reduce:
      return {Combine::reduce, Deliver::all};
    case OpKind::barrier:
      return {Combine::reduce, Deliver::all};
    case OpKind::reduce:
      return {Combine::reduce, Deliver::root};
    case OpKind::reduce_scatter:
      return {Combine::reduce, Deliver::owner};
    case OpKind::all_gather:
      return {Combine::concat, Deliver::all};
    case OpKind::all_to_all:
      return {Combine::concat, Deliver::owner};
    case OpKind::gather:
      return {Combine::concat, Deliver::root};
    case OpKind::broadcast:
      return {Combine::route, Deliver::all};
    case OpKind::scatter:
      return {Combine::route, Deliver::owner};
  }
  return {Combine::reduce, Deliver::all};
}

}  // namespace

Result<Plan> lower(const wire::CommDescriptor& descriptor) {
  if (auto valid = wire::validate(descriptor); !valid) return valid.error();
  if (descriptor.shape_of_sum != 0) {
    return Error{ErrorCode::unsupported,
                 "the host target adds flat, in rank order; shape_of_sum is " +
                     std::to_string(descriptor.shape_of_sum)};
  }
  const auto kind = static_cast<OpKind>(descriptor.kind);
  const Shape shape = shape_of(kind);
  Plan plan;
  plan.combine = shape.combine;
  plan.deliver = shape.deliver;
  plan.reduce_op = static_cast<ReduceOp>(descriptor.reduce_op);
  plan.dtype = static_cast<DType>(descriptor.dtype);
  plan.accumulator = static_cast<DType>(descriptor.accumulator);
  plan.ranks = descriptor.ranks;
  plan.root = descriptor.root;
  plan.units = wire::units_of(kind, descriptor.ranks);
  plan.unit_bytes = descriptor.unit_bytes;
  plan.fragment_bytes = descriptor.unit_bytes == 0 ? 0 : descriptor.fragment_bytes;
  plan.fragments_per_unit = static_cast<std::uint32_t>(
      wire::fragments_per_unit(descriptor.unit_bytes, descriptor.fragment_bytes));
  plan.fragments_per_chunk = descriptor.chunk_bytes / descriptor.fragment_bytes;
  plan.lanes = descriptor.lanes;
  return plan;
}

}  // namespace cais::nir
