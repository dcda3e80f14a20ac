// nir/interpret.hpp — what a tensor op computes, said plainly: the oracle that switches and
// transports are tested against. Whole tensors, scalar code, no fragments.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "nir/ir.hpp"
#include "wire/descriptor.hpp"

namespace cais::nir {

/// Bytes of one rank's tensor.
using TensorBytes = std::vector<std::byte>;

/// The output of every rank; empty for ranks that get none. inputs[r] is rank r's tensor, of the
/// type op.input; a rank that the schedule does not load may pass an empty one.
/// invalid_argument: the op does not verify, or an input has another size.
Result<std::vector<TensorBytes>> interpret(const TensorOp& op, std::span<const TensorBytes> inputs);

/// The same for a descriptor.
Result<std::vector<TensorBytes>> interpret(const wire::CommDescriptor& descriptor,
                                           std::span<const TensorBytes> inputs);

}  // namespace cais::nir
