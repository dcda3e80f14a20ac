// nir/build.hpp — a descriptor as a tensor op: the only place that knows what each collective is.
#pragma once

#include "base/result.hpp"
#include "nir/ir.hpp"
#include "wire/descriptor.hpp"

namespace cais::nir {

/// malformed: the descriptor does not hold up; unsupported: it asks for a shape of the sum (P8)
/// that the IR has no words for.
Result<TensorOp> build(const wire::CommDescriptor& descriptor);

}  // namespace cais::nir
