// sim/workload.hpp — collectives with random tensors, and what must come of them according to the
// reference interpreter.
#pragma once

#include <vector>

#include "base/rng.hpp"
#include "core/agent/agent.hpp"
#include "nir/interpret.hpp"
#include "nir/plan.hpp"
#include "sim/tree.hpp"
#include "wire/descriptor.hpp"

namespace cais::sim {

/// One collective of a group: its inputs, its outputs as they come in, and as they must be.
struct Job {
  wire::CommDescriptor descriptor{};
  nir::Plan plan;
  std::vector<nir::TensorBytes> inputs;    // by rank; never written
  std::vector<nir::TensorBytes> expected;  // by rank
  std::vector<nir::TensorBytes> send;      // by rank: the memory that the agents work on
  std::vector<nir::TensorBytes> recv;  // by rank, between guards; unused where it lies in `send`
  std::vector<agent::Submit> submits;  // by rank

  const std::byte* output(std::uint16_t rank) const { return submits[rank].recv; }
  /// Whether `rank` has what it must have, and nothing around it was touched.
  bool right(std::uint16_t rank) const;
  /// The first rank that is not right, or −1.
  int wrong_rank() const;
};

/// Values that every op of the type can take without overflow or NaN, so that bits can be compared.
nir::TensorBytes random_tensor(Rng& rng, DType dtype, std::size_t elements);

/// `number` is the op's number, as the agents will report it. Half of the jobs that can work in
/// place do. Sums have the shape of the tree (P8).
Job make_job(Rng& rng, const wire::DescriptorSpec& spec, std::uint64_t number, const Tree& tree);

/// What a group's collectives have in common.
struct Shape {
  std::uint16_t ranks;
  std::uint8_t lanes;
  std::uint32_t payload_bytes_max;
  std::uint64_t elements_max;  // of a unit
};
/// Any kind, type and size.
wire::DescriptorSpec random_spec(Rng& rng, const Shape& shape);

}  // namespace cais::sim
