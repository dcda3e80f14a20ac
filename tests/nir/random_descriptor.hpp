// tests/nir/random_descriptor.hpp — descriptors of every kind, small enough to compute whole.
#pragma once

#include <iterator>

#include "base/rng.hpp"
#include "wire/descriptor.hpp"

namespace cais::nir {

inline constexpr OpKind all_kinds[] = {
    OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter,
    OpKind::broadcast,  OpKind::reduce,     OpKind::barrier,
    OpKind::all_to_all, OpKind::gather,     OpKind::scatter};
inline constexpr DType number_types[] = {DType::float32,  DType::float64, DType::float16,
                                         DType::bfloat16, DType::int8,    DType::uint8,
                                         DType::int32,    DType::int64};

inline wire::DescriptorSpec random_spec(Rng& rng, OpKind kind) {
  wire::DescriptorSpec spec;
  spec.kind = kind;
  if (wire::reduces(kind)) spec.reduce_op = static_cast<ReduceOp>(1 + rng.below(5));
  spec.dtype = number_types[rng.below(std::size(number_types))];
  spec.ranks = static_cast<std::uint16_t>(1 + rng.below(rng.chance(0.1) ? 64 : 9));
  if (wire::has_root(kind)) spec.root = Rank(static_cast<std::uint16_t>(rng.below(spec.ranks)));
  spec.unit_elements = rng.below(1ull << rng.below(17));
  spec.fragment_bytes = static_cast<std::uint32_t>(16 * (1 + rng.below(1ull << rng.below(12))));
  spec.chunk_bytes = static_cast<std::uint32_t>(
      wire::chunk_bytes_min + rng.below(wire::chunk_bytes_max - wire::chunk_bytes_min + 1));
  spec.lanes = static_cast<std::uint8_t>(1 + rng.below(wire::lanes_max));
  return spec;
}

}  // namespace cais::nir
