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
inline constexpr std::size_t dims_max = 5;         // further dims are folded into the first
inline constexpr std::size_t shape_dims_max = 64;  // that a caller's tensor may have (PyTorch's)
inline constexpr std::uint32_t fragment_bytes_max = 65'000;  // what one UDP datagram can carry
inline constexpr std::uint32_t fragment_bytes_step = 16;     // so that every dtype divides it
inline constexpr std::uint32_t chunk_bytes_min = 64 * 1024;
inline constexpr std::uint32_t chunk_bytes_max = 1024 * 1024;
inline constexpr std::uint32_t lanes_max = 64;               // a set of lanes is one 64-bit word
inline constexpr std::uint64_t unit_bytes_max = 1ull << 35;  // Header::offset counts 8 bytes
inline constexpr std::uint64_t elements_max = ranks_max * unit_bytes_max;  // of a global shape
inline constexpr std::uint32_t fragments_max = 1u << 30;                   // of one op
inline constexpr std::uint32_t fragment_bytes_small = 512;  // none is cut smaller to fill the lanes
inline constexpr std::uint32_t lane_bytes_min = 8 * 1024;   // of an op: less is not worth a lane

static_assert(chunk_bytes_min >= fragment_bytes_max, "a chunk holds at least one fragment");
static_assert(fragments_max < (1u << 31), "serial comparison needs half the seq space");

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
inline constexpr std::uint8_t descriptor_version = 1;
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

/// What a caller knows of its collective. The rest of the descriptor follows from it.
struct DescriptorSpec {
  OpKind kind = OpKind::barrier;
  ReduceOp reduce_op = ReduceOp::none;  // of all_reduce, reduce, reduce_scatter; else none
  DType dtype = DType::uint8;
  std::uint16_t ranks = 1;
  Rank root{};                      // of broadcast, reduce, gather, scatter; else ignored
  std::uint64_t unit_elements = 0;  // of the tensor (all_reduce, reduce, broadcast) or of one
                                    // rank's shard (the others); ignored in a barrier
  /// Global shape: its product is unit_elements, times `ranks` where units are shards. Empty: one
  /// dim. More than dims_max dims are folded into the first.
  std::span<const std::uint64_t> shape{};
  std::int8_t shard_dim = -1;           // index into `shape`, −1: none
  std::uint32_t fragment_bytes = 1024;  // what the transport carries in one packet
  std::uint32_t chunk_bytes = 256 * 1024;
  std::uint8_t lanes = 1;          // of the session
  std::uint64_t group = 0;         // hash of the members
  std::uint64_t shape_of_sum = 0;  // P8
};

/// The descriptor of a collective, the same 128 bytes at every rank that calls it alike:
///   accumulator     float32 for halves that are reduced, else the dtype itself
///   fragment_bytes  at most the given size, and such that each lane gets the same number of equal
///                   fragments: a small op sends small packets
///   lanes           bytes that each rank receives / lane_bytes_min, at least 1, and no more than
///                   the session has or fragments of fragment_bytes_small would fill: a small op
///                   stays in one lane; a larger one must not queue up before one server's link
/// The error names the field of the spec that is out of range.
Result<CommDescriptor> make_descriptor(const DescriptorSpec& spec);

/// Whether an op of this kind reduces, so that it needs a ReduceOp.
constexpr bool reduces(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::reduce || kind == OpKind::reduce_scatter;
}
/// The type that sums of `dtype` are taken in.
constexpr DType accumulator_of(OpKind kind, DType dtype) {
  return reduces(kind) && is_half(dtype) ? DType::float32 : dtype;
}
/// Whether one rank of the group is special: `root`.
constexpr bool has_root(OpKind kind) {
  return kind == OpKind::broadcast || kind == OpKind::reduce || kind == OpKind::gather ||
         kind == OpKind::scatter;
}
/// Whether the unit is one rank's shard; otherwise it is the whole tensor.
constexpr bool unit_is_shard(OpKind kind) {
  return kind == OpKind::all_gather || kind == OpKind::reduce_scatter ||
         kind == OpKind::all_to_all || kind == OpKind::gather || kind == OpKind::scatter;
}
/// Units that the op's fragments are numbered over: one per receiving rank, or one in all.
constexpr std::uint32_t units_of(OpKind kind, std::uint16_t ranks) {
  const bool by_receiver =
      kind == OpKind::reduce_scatter || kind == OpKind::all_to_all || kind == OpKind::scatter;
  return by_receiver ? ranks : 1;
}
/// Fragments of each unit; an empty unit has one empty fragment.
constexpr std::uint64_t fragments_per_unit(std::uint64_t unit_bytes, std::uint32_t fragment_bytes) {
  return unit_bytes == 0 ? 1 : (unit_bytes + fragment_bytes - 1) / fragment_bytes;
}

/// XXH3-64 over the 128 bytes, seed 0.
DescriptorHash hash(const CommDescriptor& descriptor);

/// "all_reduce sum bfloat16 [2048, 4096] over 4 ranks", for people.
std::string to_string(const CommDescriptor& descriptor);

/// P12's message: both descriptors and both ranks, and what differs between them.
std::string explain_mismatch(const CommDescriptor& ours, Rank us, const CommDescriptor& theirs,
                             Rank them);

}  // namespace cais::wire
