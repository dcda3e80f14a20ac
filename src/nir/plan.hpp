// nir/plan.hpp — what a switch executes: a collective reduced to how contributions combine, to
// whom results are delivered, and where each fragment lies. The `host` target lowers a
// CommDescriptor to it (nir/targets/host/lower.hpp); the switch, the agent and the shared-memory
// transport read it and never ask which collective it was.
//
// Placement. An op has `units` units of `unit_bytes` each, and each unit is cut into
// `fragments_per_unit` fragments of `fragment_bytes`, the last one padded. Fragment f in
// [0, fragments) is part f mod fragments_per_unit of unit f / fragments_per_unit. Fragments are
// dealt to lanes in equal contiguous ranges; in each lane they take consecutive seqs.
//
//   op              units   a rank's contribution to f      delivered
//   all_reduce      1       its tensor's bytes at f         the sum, to all
//   reduce          1       its tensor's bytes at f         the sum, to the root; done to others
//   reduce_scatter  ranks   its tensor's bytes at (unit, f) the sum, to rank `unit`; done to others
//   all_gather      1       its shard's bytes at f          all payloads, to all
//   broadcast       1       the root: bytes at f; others: 0 the root's payload, to all but the root
//   barrier         1       nothing (one empty fragment)    done, to all
//   all_to_all      ranks   its tensor's bytes at (unit, f) all payloads, to rank `unit`; done
//   gather          1       its shard's bytes at f          all payloads, to the root; done
//   scatter         ranks   the root: bytes at (unit, f)    the root's, to rank `unit`; done
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/types.hpp"
#include "wire/descriptor.hpp"

namespace cais::nir {

enum class Combine : std::uint8_t {
  reduce,  // the contributions are reduced element by element, in rank order
  concat,  // the contributions stand side by side, by rank
  route,   // one rank's contribution is passed on as it is
};
enum class Deliver : std::uint8_t {
  all,    // to every rank
  owner,  // to the rank that the unit belongs to
  root,   // to one rank, Plan::root
};

/// The bytes that one fragment covers in its unit.
struct Extent {
  std::uint32_t unit;
  std::uint64_t offset;  // bytes, in the unit
  std::uint32_t bytes;   // without padding; 0 in a barrier
};

/// Half-open range of fragments [begin, end).
struct FragmentRange {
  std::uint32_t begin;
  std::uint32_t end;
  std::uint32_t count() const { return end - begin; }
};

struct Plan {
  Combine combine = Combine::reduce;
  Deliver deliver = Deliver::all;
  ReduceOp reduce_op = ReduceOp::none;  // none where nothing is added: concat, route, barrier
  DType dtype = DType::float32;
  DType accumulator = DType::float32;
  std::uint16_t ranks = 1;
  std::uint16_t root = 0;  // of Deliver::root, and the sender of Combine::route
  std::uint32_t units = 1;
  std::uint64_t unit_bytes = 0;
  std::uint32_t fragment_bytes = 0;  // payload of every packet; 0 when unit_bytes is 0
  std::uint32_t fragments_per_unit = 1;
  std::uint32_t fragments_per_chunk = 1;
  std::uint8_t lanes = 1;  // lanes that the fragments are dealt to

  std::uint32_t fragments() const { return units * fragments_per_unit; }
  Extent extent(std::uint32_t fragment) const;
  /// Chunks are numbered across units; none straddles two of them.
  std::uint32_t chunk_of(std::uint32_t fragment) const;
  /// Fragments of the op that lane `index` of [0, lanes) takes, counted from the op's first lane.
  /// Ranges are contiguous, in order, and differ by one fragment at most.
  FragmentRange dealt_to(std::uint8_t index) const;
  /// Whether `rank` contributes payload bytes (the root alone, when routing; nobody when the unit
  /// is empty).
  bool contributes_payload(Rank rank) const;
  /// Whether `rank` receives payload bytes of a fragment of `unit`; otherwise it gets a done.
  bool receives_payload(Rank rank, std::uint32_t unit) const;
};

std::string to_string(const Plan& plan);

}  // namespace cais::nir
