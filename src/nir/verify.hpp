// nir/verify.hpp — whether a tensor op makes sense, before a target sees it: every stage gets what
// it needs from the one before, and what is scattered is what the output's type says.
#pragma once

#include "base/result.hpp"
#include "nir/ir.hpp"

namespace cais::nir {

/// invalid_argument: a sentence that names the stage or the field, and what it must be.
Result<void> verify(const TensorOp& op);

}  // namespace cais::nir
