// A descriptor's fields against their ranges, and against each other.
#include "wire/descriptor.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "wire/digest.hpp"

namespace cais::wire {
namespace {

static_assert(std::endian::native == std::endian::little, "the struct is the wire format");

Error malformed(const char* field, std::uint64_t value, const std::string& allowed) {
  return Error{ErrorCode::malformed, std::string("CommDescriptor: ") + field + " is " +
                                         std::to_string(value) + ", must be " + allowed};
}

bool is_zero(std::span<const std::uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b == 0; });
}

Result<void> check_identity(const CommDescriptor& d) {
  if (d.magic != descriptor_magic) {
    return malformed("magic", d.magic, std::to_string(descriptor_magic) + " (\"CAIS\")");
  }
  if (d.version != descriptor_version) {
    return malformed("version", d.version, std::to_string(descriptor_version));
  }
  if (!is_zero(d.reserved0) || d.reserved1 != 0 || d.reserved2 != 0) {
    return Error{ErrorCode::malformed, "CommDescriptor: a reserved byte is not zero"};
  }
  return {};
}

Result<void> check_types(const CommDescriptor& d) {
  const auto kind = op_kind_from(d.kind);
  if (!kind) return malformed("kind", d.kind, "an OpKind, [1, 9]");
  const auto op = reduce_op_from(d.reduce_op);
  if (!op) return malformed("reduce_op", d.reduce_op, "a ReduceOp, [0, 5]");
  const auto dtype = dtype_from(d.dtype);
  if (!dtype) return malformed("dtype", d.dtype, "a DType");
  if (reduces(*kind) != (*op != ReduceOp::none)) {
    return malformed(
        "reduce_op", d.reduce_op,
        (reduces(*kind) ? "other than none in " : "none in ") + std::string(to_string(*kind)));
  }
  if (reduces(*kind) && is_opaque(*dtype)) {
    return malformed("dtype", d.dtype, "a type that can be added, not opaque bytes");
  }
  const DType accumulator = accumulator_of(*kind, *dtype);
  if (d.accumulator != static_cast<std::uint8_t>(accumulator)) {
    return malformed("accumulator", d.accumulator,
                     std::to_string(static_cast<unsigned>(accumulator)) + " (" +
                         std::string(to_string(accumulator)) + ")");
  }
  return {};
}

Result<void> check_group(const CommDescriptor& d) {
  const auto kind = static_cast<OpKind>(d.kind);
  if (d.ranks < 1 || d.ranks > ranks_max) {
    return malformed("ranks", d.ranks, "in [1, " + std::to_string(ranks_max) + "]");
  }
  const std::uint16_t roots = has_root(kind) ? d.ranks : std::uint16_t{1};
  if (d.root >= roots) return malformed("root", d.root, "in [0, " + std::to_string(roots) + ")");
  const int guard_bits = std::bit_width(static_cast<unsigned>(d.ranks - 1));
  if (d.guard_bits != 0 && (d.guard_bits != guard_bits || !reduces(kind))) {
    return malformed("guard_bits", d.guard_bits,
                     reduces(kind) ? "0 or " + std::to_string(guard_bits) : "0");
  }
  return {};
}

Result<void> check_sizes(const CommDescriptor& d) {
  if (d.fragment_bytes < fragment_bytes_step || d.fragment_bytes > fragment_bytes_max ||
      d.fragment_bytes % fragment_bytes_step != 0) {
    return malformed("fragment_bytes", d.fragment_bytes, "a multiple of 16 in [16, 65000]");
  }
  if (d.chunk_bytes < chunk_bytes_min || d.chunk_bytes > chunk_bytes_max) {
    return malformed("chunk_bytes", d.chunk_bytes, "in [65536, 1048576]");
  }
  if (d.lanes < 1 || d.lanes > lanes_max) return malformed("lanes", d.lanes, "in [1, 64]");
  const auto kind = static_cast<OpKind>(d.kind);
  if (kind == OpKind::barrier && d.unit_bytes != 0) {
    return malformed("unit_bytes", d.unit_bytes, "0 in a barrier");
  }
  if (d.unit_bytes > unit_bytes_max) {
    return malformed("unit_bytes", d.unit_bytes, "at most " + std::to_string(unit_bytes_max));
  }
  if (d.unit_bytes % size_of(static_cast<DType>(d.dtype)) != 0) {
    return malformed("unit_bytes", d.unit_bytes, "a multiple of the dtype's size");
  }
  const std::uint64_t fragments =
      units_of(kind, d.ranks) * fragments_per_unit(d.unit_bytes, d.fragment_bytes);
  if (fragments > fragments_max) {
    return malformed("unit_bytes", d.unit_bytes,
                     "at most " + std::to_string(fragments_max) + " fragments of fragment_bytes " +
                         "in all; it makes " + std::to_string(fragments));
  }
  return {};
}

Result<void> check_shape(const CommDescriptor& d) {
  const auto kind = static_cast<OpKind>(d.kind);
  if (d.layout != 0) return malformed("layout", d.layout, "0 (contiguous)");
  if (d.dims > dims_max) return malformed("dims", d.dims, "in [0, 5]");
  if (d.shard_dim < -1 || d.shard_dim >= static_cast<int>(d.dims)) {
    return Error{ErrorCode::malformed, "CommDescriptor: shard_dim is " +
                                           std::to_string(d.shard_dim) +
                                           ", must be -1 or in [0, dims)"};
  }
  unsigned __int128 elements = 1;
  for (std::size_t dim = 0; dim < dims_max; ++dim) {
    if (d.stride[dim] != 0) return malformed("stride", dim, "0 in every dim when contiguous");
    if (dim >= d.dims && d.shape[dim] != 0) return malformed("shape", d.shape[dim], "0 past dims");
    if (dim < d.dims && d.shape[dim] > elements_max) {
      return malformed("shape", d.shape[dim], "at most " + std::to_string(elements_max));
    }
  }
  for (std::size_t dim = 0; dim < d.dims; ++dim) {
    elements *= d.shape[dim];
    if (elements > elements_max) return malformed("shape", d.shape[dim], "smaller in all");
  }
  const std::uint64_t held =
      d.unit_bytes / size_of(static_cast<DType>(d.dtype)) * (unit_is_shard(kind) ? d.ranks : 1u);
  if (d.dims != 0 && elements != held) {
    return malformed("shape", static_cast<std::uint64_t>(elements),
                     std::to_string(held) + " elements, as unit_bytes and ranks say");
  }
  if (unit_is_shard(kind) && d.shard_dim >= 0 && d.shape[d.shard_dim] % d.ranks != 0) {
    return malformed("shape[shard_dim]", d.shape[d.shard_dim], "a multiple of ranks");
  }
  return {};
}

}  // namespace

Result<void> validate(const CommDescriptor& descriptor) {
  for (auto check : {check_identity, check_types, check_group, check_sizes, check_shape}) {
    if (auto result = check(descriptor); !result) return result;
  }
  return {};
}

Result<CommDescriptor> parse_descriptor(std::span<const std::byte> bytes) {
  if (bytes.size() != descriptor_bytes) {
    return malformed("size", bytes.size(), std::to_string(descriptor_bytes) + " bytes");
  }
  CommDescriptor descriptor;
  std::memcpy(&descriptor, bytes.data(), descriptor_bytes);
  if (auto valid = validate(descriptor); !valid) return valid.error();
  return descriptor;
}

std::span<const std::byte, descriptor_bytes> as_bytes(const CommDescriptor& descriptor) {
  return std::as_bytes(std::span<const CommDescriptor, 1>(&descriptor, 1));
}

DescriptorHash hash(const CommDescriptor& descriptor) {
  return DescriptorHash(digest(as_bytes(descriptor)));
}

}  // namespace cais::wire
