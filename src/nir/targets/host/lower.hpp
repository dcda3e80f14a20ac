// nir/targets/host/lower.hpp — the target "host": the software switch, the agent and the
// shared-memory transport, which all execute a Plan.
#pragma once

#include "base/result.hpp"
#include "nir/ir.hpp"
#include "nir/plan.hpp"
#include "wire/descriptor.hpp"

namespace cais::nir {

/// A verified op as a plan. unsupported: right, but not what this target can execute; the sentence
/// says which stage, and what the target can do instead.
Result<Plan> lower(const TensorOp& op);

/// build, verify and lower. Also malformed: the descriptor is not valid.
Result<Plan> lower(const wire::CommDescriptor& descriptor);

}  // namespace cais::nir
