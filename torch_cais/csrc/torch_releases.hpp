// torch_cais/csrc/torch_releases.hpp — what differs between the releases of PyTorch, from 2.5 on.
// Each difference is asked for by name, so that no release number stands anywhere, and nothing else
// in torch_cais asks for one.
#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace cais::pytorch {

/// c10d::Backend with the calls that not every release makes: 2.8 and later abort and shut down a
/// backend, 2.12 and later change its timeout.
class Backend : public c10d::Backend {
 public:
  using c10d::Backend::Backend;
  virtual void setTimeout(std::chrono::milliseconds timeout) = 0;
  virtual void abort() = 0;
  virtual void shutdown() = 0;
};

/// The same calls to another library's backend; nothing where the release has none.
template <typename Inner>
void set_timeout_of_inner(Inner& inner, std::chrono::milliseconds timeout) {
  if constexpr (requires { inner.setTimeout(timeout); }) inner.setTimeout(timeout);
}
template <typename Inner>
void abort_inner(Inner& inner) {
  if constexpr (requires { inner.abort(); }) inner.abort();
}
template <typename Inner>
void shut_down_inner(Inner& inner) {
  if constexpr (requires { inner.shutdown(); }) inner.shutdown();
}

/// Whether the caller goes on while the collective runs. Not all options say so before 2.8.
template <typename Options>
bool is_async(const Options& options) {
  if constexpr (requires { options.asyncOp; }) {
    return options.asyncOp;
  } else {
    return true;
  }
}

/// The profiler's name for a coalesced reduce_scatter_tensor.
template <typename Type = c10d::OpType>
constexpr Type op_type_of_coalesced_reduce_scatter() {
  if constexpr (requires { Type::REDUCE_SCATTER_TENSOR_COALESCED; }) {
    return Type::REDUCE_SCATTER_TENSOR_COALESCED;
  } else {
    return Type::COALESCED;
  }
}

}  // namespace cais::pytorch
