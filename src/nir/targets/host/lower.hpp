// nir/targets/host/lower.hpp — the target "host": the software switch, the agent and the
// shared-memory transport, which all execute a Plan.
#pragma once

#include "base/result.hpp"
#include "nir/plan.hpp"
#include "wire/descriptor.hpp"

namespace cais::nir {

/// Descriptor → IR → verified → Plan. malformed: the descriptor is not valid; unsupported: it is,
/// but this target cannot execute it.
Result<Plan> lower(const wire::CommDescriptor& descriptor);

}  // namespace cais::nir
