#include "runtime/mixed/partial_sum.hpp"

#include <array>
#include <cstring>

#include "base/check.hpp"
#include "numeric/reduce.hpp"

namespace cais::runtime::mixed {
namespace {

void convert(const numeric::Reduction& reduction, const std::byte* from, std::byte* to,
             std::size_t count) {
  const auto reducer = numeric::Reducer::find(reduction);
  CAIS_CHECK(reducer.has_value());
  const std::array<std::byte*, 1> outputs{to};
  const std::array<const std::byte*, 1> inputs{from};
  (*reducer)(outputs, inputs, count);
}

}  // namespace

void PartialSum::widen(const std::byte* from, std::byte* to, std::size_t count) const {
  convert({ReduceOp::sum, dtype, partial(), 1}, from, to, count);
}

void PartialSum::finish(const std::byte* from, std::byte* to, std::size_t count) const {
  if (op == ReduceOp::avg || widens()) {
    const ReduceOp last = op == ReduceOp::avg ? ReduceOp::avg : ReduceOp::sum;
    convert({last, partial(), dtype, static_cast<std::uint32_t>(ranks)}, from, to, count);
  } else if (from != to) {
    std::memcpy(to, from, count * size_of(dtype));
  }
}

}  // namespace cais::runtime::mixed
