// wire/descriptor.hpp — CommDescriptor: all that a switch and a peer must know of a collective,
// in exactly 128 bytes. It travels over the management channel, once per distinct descriptor
// (P14); packets carry only its hash. It holds shared facts alone: every rank of a group that
// calls the same collective makes the same 128 bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "base/types.hpp"

namespace cais::wire {

inline constexpr std::size_t descriptor_bytes = 128;
inline constexpr std::size_t dims_max = 5;  // further dims are folded into the first

/// In memory as on the wire: little-endian, no padding. Build it with `make_descriptor`.
struct CommDescriptor {
  std::uint32_t magic;            //   0: descriptor_magic
  std::uint8_t version;           //   4
  std::uint8_t kind;              //   5: OpKind
  std::uint8_t reduce_op;         //   6: ReduceOp, none where nothing is reduced
  std::uint8_t dtype;             //   7: DType of the tensor
  std::uint8_t accumulator;       //   8: DType that sums are taken in
  std::uint8_t guard_bits;        //   9: ⌈log2 ranks⌉ on integer targets, 0 elsewhere
  std::uint8_t dims;              //  10: [0, dims_max]
  std::int8_t shard_dim;          //  11: dim that ranks hold shards of, −1: none
  std::uint16_t ranks;            //  12
  std::uint16_t root;             //  14: of broadcast, reduce, gather, scatter; else 0
  std::uint32_t fragment_bytes;   //  16: payload of each fragment, multiple of 16
  std::uint32_t chunk_bytes;      //  20: unit of scheduling, tracing and audit
  std::uint64_t unit_bytes;       //  24: bytes of the op's unit: the tensor (all_reduce, reduce,
                                  //      broadcast) or one rank's shard (the others)
  std::uint8_t lanes;             //  32: lanes that the op's fragments are dealt to
  std::uint8_t layout;            //  33: 0 contiguous; others are named by the TSA layer
  std::uint8_t reserved0[6];      //  34: zero
  std::uint64_t shape[dims_max];  //  40: global shape, elements
  std::int32_t stride[dims_max];  //  80: in elements; 0 when contiguous
  std::uint32_t reserved1;        // 100: zero
  std::uint64_t group;            // 104: hash of the group's members, in rank order
  std::uint64_t shape_of_sum;     // 112: which ranks are added first (P8); 0: flat, in rank order
  std::uint64_t reserved2;        // 120: zero
};

inline constexpr std::uint32_t descriptor_magic = 0x53494143;  // "CAIS"
static_assert(sizeof(CommDescriptor) == descriptor_bytes);
static_assert(offsetof(CommDescriptor, ranks) == 12 && offsetof(CommDescriptor, unit_bytes) == 24);
static_assert(offsetof(CommDescriptor, shape) == 40 && offsetof(CommDescriptor, stride) == 80);
static_assert(offsetof(CommDescriptor, group) == 104);
static_assert(offsetof(CommDescriptor, shape_of_sum) == 112);

/// Checks each field against its range; the error names the field, its value and the range.
Result<CommDescriptor> parse_descriptor(std::span<const std::byte> bytes);
/// The same check, on a descriptor that was built here.
Result<void> validate(const CommDescriptor& descriptor);
std::span<const std::byte, descriptor_bytes> as_bytes(const CommDescriptor& descriptor);

/// XXH3-64 over the 128 bytes.
DescriptorHash hash(const CommDescriptor& descriptor);

/// "all_reduce sum bfloat16 [2048, 4096] over 4 ranks", for people.
std::string to_string(const CommDescriptor& descriptor);

/// P12's message: both descriptors and both ranks, and what differs between them.
std::string explain_mismatch(const CommDescriptor& ours, Rank us, const CommDescriptor& theirs,
                             Rank them);

}  // namespace cais::wire
