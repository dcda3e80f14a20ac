// torch_cais/csrc/route.hpp — which library computes a collective, and why. Decided from what all
// ranks of the group share (op, dtype, reduce op, layout, device), never from anything local: two
// ranks that chose differently would wait for each other for ever.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "base/types.hpp"

namespace cais::pytorch {

enum class Op : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  barrier,
  all_to_all,
  gather,
  scatter,
  send,
  recv,
  monitored_barrier,
};
inline constexpr std::size_t ops = 12;
std::string_view to_string(Op op);

enum class Path : std::uint8_t { cais, gloo, nccl };
inline constexpr std::size_t paths = 3;
std::string_view to_string(Path path);

/// Why a collective is not computed by CAIS.
enum class Reason : std::uint8_t {
  none,            // it is
  point_to_point,  // not a collective
  diagnosis,       // monitored_barrier tells by name which ranks are missing
  reduce_op,       // bitwise ops, PREMUL_SUM
  dtype,           // an element type that CAIS does not add
  sparse,          // not a strided tensor
  split_sizes,     // given sizes may differ between ranks, and each rank sees only its own
  transport,       // the transport of this group does not compute this op
  cuda,            // tensors on a GPU belong to NCCL
};
inline constexpr std::size_t reasons = 9;
std::string_view to_string(Reason reason);

struct Route {
  Path path = Path::cais;
  Reason reason = Reason::none;
};

/// A tensor's elements as CAIS moves or reduces them. `per_element` is 2 where one element of the
/// tensor is a pair (complex numbers), else 1.
struct Elements {
  DType dtype = DType::uint8;
  ReduceOp reduce_op = ReduceOp::none;
  std::size_t per_element = 1;
};

/// What moving such elements takes; opaque bytes where CAIS has no such type. Nothing for element
/// sizes that are no power of two up to 16 bytes.
std::optional<Elements> elements_to_move(at::ScalarType type);

/// What reducing such elements takes, or the reason why CAIS does not. bool reduces as NCCL does:
/// a sum is "any", a product is "all".
std::optional<Elements> elements_to_reduce(at::ScalarType type, c10d::ReduceOp::RedOpType op,
                                           Reason* reason);

}  // namespace cais::pytorch
