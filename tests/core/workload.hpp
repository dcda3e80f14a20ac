// tests/core/workload.hpp — collectives with random tensors, and what must come of them according
// to the reference interpreter.
#pragma once

#include <vector>

#include "base/rng.hpp"
#include "nir/interpret.hpp"
#include "nir/plan.hpp"
#include "tests/core/simulation.hpp"
#include "wire/descriptor.hpp"

namespace cais::simulation {

/// One collective of a group: its inputs, its outputs as they come in, and as they must be.
struct Job {
  wire::CommDescriptor descriptor{};
  nir::Plan plan;
  std::vector<nir::TensorBytes> send;  // by rank
  std::vector<nir::TensorBytes> recv;  // by rank; empty where it lies in `send`
  std::vector<nir::TensorBytes> expected;
  std::vector<agent::Submit> submits;  // by rank

  const std::byte* output(std::uint16_t rank) const { return submits[rank].recv; }
  /// The first rank whose output is wrong, or −1.
  int wrong_rank() const;
};

/// Values that every op of the type can take without overflow or NaN, so that bits can be compared.
nir::TensorBytes random_tensor(Rng& rng, DType dtype, std::size_t elements);

/// `number` is the op's number, as the agents will report it.
Job make_job(Rng& rng, const wire::DescriptorSpec& spec, std::uint64_t number);

/// Any kind, type and size, up to `elements_max` elements in a unit.
wire::DescriptorSpec random_spec(Rng& rng, const Setup& setup, std::uint64_t elements_max);

}  // namespace cais::simulation
