// numeric/kernels/find.hpp — the best kernel of each op on this machine, or nullptr when the types
// do not fit. One source file per op, so that the many instances compile side by side.
#pragma once

#include "base/types.hpp"
#include "numeric/reduce.hpp"

namespace cais::numeric {

Reducer::Kernel find_sum(DType input, DType output);
Reducer::Kernel find_avg(DType input, DType output);
Reducer::Kernel find_min(DType input, DType output);
Reducer::Kernel find_max(DType input, DType output);
Reducer::Kernel find_product(DType input, DType output);

}  // namespace cais::numeric
