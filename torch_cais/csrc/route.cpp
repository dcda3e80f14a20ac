#include "route.hpp"

#include <array>

namespace cais::pytorch {
namespace {

std::optional<ReduceOp> reduce_op_of(c10d::ReduceOp::RedOpType op) {
  switch (op) {
    case c10d::ReduceOp::SUM:
      return ReduceOp::sum;
    case c10d::ReduceOp::AVG:
      return ReduceOp::avg;
    case c10d::ReduceOp::MIN:
      return ReduceOp::min;
    case c10d::ReduceOp::MAX:
      return ReduceOp::max;
    case c10d::ReduceOp::PRODUCT:
      return ReduceOp::product;
    default:
      return std::nullopt;
  }
}

std::optional<DType> number_of(at::ScalarType type) {
  switch (type) {
    case at::ScalarType::Float:
      return DType::float32;
    case at::ScalarType::Double:
      return DType::float64;
    case at::ScalarType::Half:
      return DType::float16;
    case at::ScalarType::BFloat16:
      return DType::bfloat16;
    case at::ScalarType::Char:
      return DType::int8;
    case at::ScalarType::Byte:
      return DType::uint8;
    case at::ScalarType::Int:
      return DType::int32;
    case at::ScalarType::Long:
      return DType::int64;
    default:
      return std::nullopt;
  }
}

std::optional<Elements> bool_to_reduce(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::max:
      return Elements{DType::uint8, ReduceOp::max, 1};
    case ReduceOp::product:
    case ReduceOp::min:
      return Elements{DType::uint8, ReduceOp::min, 1};
    default:
      return std::nullopt;
  }
}

bool is_complex_sum(at::ScalarType type, ReduceOp op) {
  return (type == at::ScalarType::ComplexFloat || type == at::ScalarType::ComplexDouble) &&
         (op == ReduceOp::sum || op == ReduceOp::avg);
}

}  // namespace

std::string_view to_string(Op op) {
  static constexpr std::array<std::string_view, ops> names = {
      "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "barrier",
      "all_to_all", "gather",     "scatter",        "send",      "recv",   "monitored_barrier"};
  return names[static_cast<std::size_t>(op)];
}

std::string_view to_string(Path path) {
  static constexpr std::array<std::string_view, paths> names = {"cais", "gloo", "nccl"};
  return names[static_cast<std::size_t>(path)];
}

std::string_view to_string(Reason reason) {
  static constexpr std::array<std::string_view, reasons> names = {
      "computed by CAIS",
      "point to point",
      "names the ranks that are missing",
      "reduce op not computed by CAIS",
      "dtype not reduced by CAIS",
      "sparse tensor",
      "split sizes may differ between ranks",
      "op not computed by this transport",
      "tensor on a GPU"};
  return names[static_cast<std::size_t>(reason)];
}

std::optional<Elements> elements_to_move(at::ScalarType type) {
  if (const auto number = number_of(type)) return Elements{*number, ReduceOp::none, 1};
  switch (c10::elementSize(type)) {
    case 1:
      return Elements{DType::bytes1, ReduceOp::none, 1};
    case 2:
      return Elements{DType::bytes2, ReduceOp::none, 1};
    case 4:
      return Elements{DType::bytes4, ReduceOp::none, 1};
    case 8:
      return Elements{DType::bytes8, ReduceOp::none, 1};
    case 16:
      return Elements{DType::bytes16, ReduceOp::none, 1};
    default:
      return std::nullopt;
  }
}

std::optional<Elements> elements_to_reduce(at::ScalarType type, c10d::ReduceOp::RedOpType op,
                                           Reason* reason) {
  const auto reduce_op = reduce_op_of(op);
  if (!reduce_op) {
    *reason = Reason::reduce_op;
    return std::nullopt;
  }
  if (const auto number = number_of(type)) return Elements{*number, *reduce_op, 1};
  if (is_complex_sum(type, *reduce_op)) {
    const bool wide = type == at::ScalarType::ComplexDouble;
    return Elements{wide ? DType::float64 : DType::float32, *reduce_op, 2};
  }
  if (type == at::ScalarType::Bool) {
    if (const auto elements = bool_to_reduce(*reduce_op)) return elements;
  }
  *reason = Reason::dtype;
  return std::nullopt;
}

}  // namespace cais::pytorch
