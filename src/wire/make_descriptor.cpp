// From what a caller knows to the 128 bytes. On the path of every collective: no allocation.
#include <algorithm>

#include "wire/descriptor.hpp"

namespace cais::wire {
namespace {

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

void set_shape(const DescriptorSpec& spec, CommDescriptor& descriptor) {
  const std::size_t folded =
      spec.shape.size() > dims_max ? spec.shape.size() - dims_max : std::size_t{0};
  descriptor.dims = static_cast<std::uint8_t>(spec.shape.size() - folded);
  descriptor.shape[0] = 1;
  for (std::size_t dim = 0; dim <= folded; ++dim) descriptor.shape[0] *= spec.shape[dim];
  std::copy(spec.shape.begin() + static_cast<std::ptrdiff_t>(folded) + 1, spec.shape.end(),
            descriptor.shape + 1);
  if (spec.shard_dim < 0) return;
  descriptor.shard_dim =
      static_cast<std::int8_t>(std::max(0, spec.shard_dim - static_cast<int>(folded)));
}

void set_sizes(const DescriptorSpec& spec, CommDescriptor& descriptor) {
  descriptor.unit_bytes = spec.unit_elements * size_of(spec.dtype);
  const std::uint64_t useful = std::max<std::uint64_t>(
      round_up(descriptor.unit_bytes, fragment_bytes_step), fragment_bytes_step);
  descriptor.fragment_bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(spec.fragment_bytes, useful));
  if (descriptor.fragment_bytes == 0) return;  // refused by validate()
  const std::uint64_t fragments =
      units_of(spec.kind, spec.ranks) *
      fragments_per_unit(descriptor.unit_bytes, descriptor.fragment_bytes);
  descriptor.lanes = static_cast<std::uint8_t>(std::clamp<std::uint64_t>(
      fragments / fragments_per_lane_min, 1, std::max<unsigned>(1, spec.lanes)));
}

}  // namespace

Result<CommDescriptor> make_descriptor(const DescriptorSpec& spec) {
  if (spec.unit_elements > unit_bytes_max) {
    return Error{ErrorCode::invalid_argument, "a unit of " + std::to_string(spec.unit_elements) +
                                                  " elements is more than one op can move"};
  }
  CommDescriptor descriptor{};
  descriptor.magic = descriptor_magic;
  descriptor.version = descriptor_version;
  descriptor.kind = static_cast<std::uint8_t>(spec.kind);
  descriptor.shard_dim = -1;
  descriptor.ranks = spec.ranks;
  descriptor.root = has_root(spec.kind) ? spec.root.value : std::uint16_t{0};
  descriptor.chunk_bytes = spec.chunk_bytes;
  descriptor.group = spec.group;
  descriptor.shape_of_sum = spec.shape_of_sum;
  DescriptorSpec used = spec;
  if (spec.kind == OpKind::barrier) {  // nothing is moved: every barrier of a group is the same
    used.dtype = DType::uint8;
    used.unit_elements = 0;
    used.shape = {};
    used.reduce_op = ReduceOp::none;
  }
  const std::uint64_t elements = used.unit_elements * (unit_is_shard(used.kind) ? used.ranks : 1u);
  if (used.kind != OpKind::barrier && used.shape.empty()) used.shape = {&elements, 1};
  descriptor.reduce_op = static_cast<std::uint8_t>(used.reduce_op);
  descriptor.dtype = static_cast<std::uint8_t>(used.dtype);
  descriptor.accumulator = static_cast<std::uint8_t>(accumulator_of(used.kind, used.dtype));
  if (!used.shape.empty()) set_shape(used, descriptor);
  set_sizes(used, descriptor);
  if (auto valid = validate(descriptor); !valid) {
    return Error{ErrorCode::invalid_argument, valid.error().message};
  }
  return descriptor;
}

}  // namespace cais::wire
