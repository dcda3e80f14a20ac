#include "numeric/reduce.hpp"

#include "numeric/kernels/find.hpp"

namespace cais::numeric {
namespace {

Reducer::Kernel kernel_for(const Reduction& reduction) {
  switch (reduction.op) {
    case ReduceOp::sum:
      return find_sum(reduction.input, reduction.output);
    case ReduceOp::avg:
      return find_avg(reduction.input, reduction.output);
    case ReduceOp::min:
      return find_min(reduction.input, reduction.output);
    case ReduceOp::max:
      return find_max(reduction.input, reduction.output);
    case ReduceOp::product:
      return find_product(reduction.input, reduction.output);
    case ReduceOp::none:
      break;
  }
  return nullptr;
}

}  // namespace

std::optional<Reducer> Reducer::find(const Reduction& reduction) {
  const Kernel kernel = kernel_for(reduction);
  if (kernel == nullptr || reduction.divisor == 0) return std::nullopt;
  return Reducer(kernel, reduction.divisor);
}

}  // namespace cais::numeric
