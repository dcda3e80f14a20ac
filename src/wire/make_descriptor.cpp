// From what a caller knows to the 128 bytes. On the path of every collective: no allocation.
#include <algorithm>
#include <numeric>

#include "base/round_up.hpp"
#include "wire/descriptor.hpp"

namespace cais::wire {
namespace {

void set_shape(const DescriptorSpec& spec, CommDescriptor& descriptor) {
  const std::size_t dims = spec.shape.size();
  const std::size_t folded = dims > dims_max ? dims - dims_max : 0;
  descriptor.dims = static_cast<std::uint8_t>(dims - folded);
  std::uint64_t first = 1;
  for (std::size_t dim = 0; dim <= folded; ++dim) {
    // A product past 64 bits must not come out as a small one: validate() refuses the largest.
    if (__builtin_mul_overflow(first, spec.shape[dim], &first)) first = ~std::uint64_t{0};
  }
  descriptor.shape[0] = first;
  std::copy(spec.shape.begin() + static_cast<std::ptrdiff_t>(folded) + 1, spec.shape.end(),
            descriptor.shape + 1);
  if (spec.shard_dim < 0) return;
  const int dim = std::max(0, spec.shard_dim - static_cast<int>(folded));
  descriptor.shard_dim = static_cast<std::int8_t>(dim);
}

/// Fragments as large as they may be, but such that every lane gets the same number of them and the
/// last of a unit is about as full as the others: an op takes as long as its longest lane.
void set_sizes(const DescriptorSpec& spec, CommDescriptor& descriptor) {
  const std::uint64_t unit_bytes = spec.unit_elements * size_of(spec.dtype);
  const std::uint64_t units = units_of(spec.kind, spec.ranks);
  // Each rank of an all-gather is sent the payloads of all.
  const std::uint64_t received =
      units * unit_bytes * (spec.kind == OpKind::all_gather ? spec.ranks : 1u);
  const std::uint64_t per_unit_max = std::max<std::uint64_t>(unit_bytes / fragment_bytes_small, 1);
  std::uint64_t per_unit = fragments_per_unit(unit_bytes, spec.fragment_bytes);
  const std::uint64_t lanes = std::clamp<std::uint64_t>(
      received / lane_bytes_min, 1,
      std::min<std::uint64_t>(spec.lanes, units * std::max(per_unit, per_unit_max)));
  per_unit = round_up(per_unit, lanes / std::gcd(units, lanes));
  const std::uint64_t even = round_up((unit_bytes + per_unit - 1) / per_unit, fragment_bytes_step);
  descriptor.unit_bytes = unit_bytes;
  descriptor.fragment_bytes = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(even, fragment_bytes_step, spec.fragment_bytes));
  descriptor.chunk_bytes = spec.chunk_bytes;
  descriptor.lanes = static_cast<std::uint8_t>(lanes);
}

Result<void> check(const DescriptorSpec& spec) {
  const auto refuse = [](const char* field, std::uint64_t value, const std::string& allowed) {
    return Error{ErrorCode::invalid_argument, std::string("DescriptorSpec: ") + field + " is " +
                                                  std::to_string(value) + ", must be " + allowed};
  };
  // What validate() cannot see any more in the finished descriptor.
  if (spec.lanes < 1 || spec.lanes > lanes_max) return refuse("lanes", spec.lanes, "in [1, 64]");
  if (spec.fragment_bytes < fragment_bytes_step || spec.fragment_bytes > fragment_bytes_max) {
    return refuse("fragment_bytes", spec.fragment_bytes, "in [16, 65000]");
  }
  if (spec.unit_elements > unit_bytes_max) {
    return refuse("unit_elements", spec.unit_elements, "at most " + std::to_string(unit_bytes_max));
  }
  if (spec.shape.size() > shape_dims_max) {
    return refuse("shape", spec.shape.size(),
                  "of at most " + std::to_string(shape_dims_max) + " dims");
  }
  if (spec.shard_dim < -1 || (spec.shard_dim >= 0 && !spec.shape.empty() &&
                              static_cast<std::size_t>(spec.shard_dim) >= spec.shape.size())) {
    return Error{ErrorCode::invalid_argument, "DescriptorSpec: shard_dim is " +
                                                  std::to_string(spec.shard_dim) +
                                                  ", must be -1 or a dim of the shape"};
  }
  return {};
}

/// A barrier moves nothing: every barrier of a group has the same descriptor.
DescriptorSpec canonical(DescriptorSpec spec) {
  if (spec.kind == OpKind::barrier) {
    spec.reduce_op = ReduceOp::none;
    spec.dtype = DType::uint8;
    spec.unit_elements = 0;
    spec.shape = {};
  }
  if (!has_root(spec.kind)) spec.root = Rank(0);
  return spec;
}

}  // namespace

Result<CommDescriptor> make_descriptor(const DescriptorSpec& asked) {
  if (auto checked = check(asked); !checked) return checked.error();
  DescriptorSpec spec = canonical(asked);
  const std::uint64_t elements = spec.unit_elements * (unit_is_shard(spec.kind) ? spec.ranks : 1u);
  if (spec.shape.empty() && spec.kind != OpKind::barrier) spec.shape = {&elements, 1};
  CommDescriptor descriptor{};
  descriptor.magic = descriptor_magic;
  descriptor.version = descriptor_version;
  descriptor.kind = static_cast<std::uint8_t>(spec.kind);
  descriptor.reduce_op = static_cast<std::uint8_t>(spec.reduce_op);
  descriptor.dtype = static_cast<std::uint8_t>(spec.dtype);
  descriptor.accumulator = static_cast<std::uint8_t>(accumulator_of(spec.kind, spec.dtype));
  descriptor.shard_dim = -1;
  descriptor.ranks = spec.ranks;
  descriptor.root = spec.root.value;
  descriptor.group = spec.group;
  descriptor.shape_of_sum = spec.shape_of_sum;
  if (!spec.shape.empty()) set_shape(spec, descriptor);
  set_sizes(spec, descriptor);
  if (auto valid = validate(descriptor); !valid) {
    return Error{ErrorCode::invalid_argument, valid.error().message};
  }
  return descriptor;
}

}  // namespace cais::wire
