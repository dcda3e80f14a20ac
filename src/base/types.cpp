#include "base/types.hpp"

#include <array>
#include <utility>

namespace cais {
namespace {

template <typename Enum, std::size_t count>
using Names = std::array<std::pair<Enum, std::string_view>, count>;

constexpr Names<DType, 13> dtypes{{
    {DType::float32, "float32"},
    {DType::float64, "float64"},
    {DType::float16, "float16"},
    {DType::bfloat16, "bfloat16"},
    {DType::int8, "int8"},
    {DType::uint8, "uint8"},
    {DType::int32, "int32"},
    {DType::int64, "int64"},
    {DType::bytes1, "bytes1"},
    {DType::bytes2, "bytes2"},
    {DType::bytes4, "bytes4"},
    {DType::bytes8, "bytes8"},
    {DType::bytes16, "bytes16"},
}};
constexpr Names<ReduceOp, 6> reduce_ops{{
    {ReduceOp::none, "none"},
    {ReduceOp::sum, "sum"},
    {ReduceOp::avg, "avg"},
    {ReduceOp::min, "min"},
    {ReduceOp::max, "max"},
    {ReduceOp::product, "product"},
}};
constexpr Names<OpKind, 9> op_kinds{{
    {OpKind::all_reduce, "all_reduce"},
    {OpKind::all_gather, "all_gather"},
    {OpKind::reduce_scatter, "reduce_scatter"},
    {OpKind::broadcast, "broadcast"},
    {OpKind::reduce, "reduce"},
    {OpKind::barrier, "barrier"},
    {OpKind::all_to_all, "all_to_all"},
    {OpKind::gather, "gather"},
    {OpKind::scatter, "scatter"},
}};

template <typename Enum, std::size_t count>
std::string_view name_of(const Names<Enum, count>& names, Enum value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "unknown";
}

template <typename Enum, std::size_t count>
std::optional<Enum> with_code(const Names<Enum, count>& names, std::uint8_t code) {
  for (const auto& [known, name] : names) {
    if (static_cast<std::uint8_t>(known) == code) return known;
  }
  return std::nullopt;
}

template <typename Enum, std::size_t count>
std::optional<Enum> named(const Names<Enum, count>& names, std::string_view wanted) {
  for (const auto& [known, name] : names) {
    if (name == wanted) return known;
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(DType dtype) { return name_of(dtypes, dtype); }
std::string_view to_string(ReduceOp op) { return name_of(reduce_ops, op); }
std::string_view to_string(OpKind kind) { return name_of(op_kinds, kind); }

std::optional<DType> dtype_from(std::uint8_t code) { return with_code(dtypes, code); }
std::optional<ReduceOp> reduce_op_from(std::uint8_t code) { return with_code(reduce_ops, code); }
std::optional<OpKind> op_kind_from(std::uint8_t code) { return with_code(op_kinds, code); }

std::optional<DType> dtype_named(std::string_view name) { return named(dtypes, name); }
std::optional<ReduceOp> reduce_op_named(std::string_view name) { return named(reduce_ops, name); }
std::optional<OpKind> op_kind_named(std::string_view name) { return named(op_kinds, name); }

}  // namespace cais
