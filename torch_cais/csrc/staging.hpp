// torch_cais/csrc/staging.hpp — tensors as flat CPU memory, which is what a transport takes.
//
// A dense CPU tensor is such memory already. Any other (strided, lazily conjugated, on a device) is
// copied into a contiguous CPU tensor first, and results are copied back by `land`. So are lists of
// tensors that do not lie behind each other in memory. Copies to and from a device block until they
// are done, so that neither side needs a stream or an event afterwards.
//
// Order of use: any number of read/write calls, the collective, `land`.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

namespace cais::pytorch {

class Staging {
 public:
  /// With `keep`, holds a reference to every tensor until it is destroyed: for collectives that
  /// outlive their call.
  explicit Staging(bool keep) : keep_(keep) {}

  const void* read(const at::Tensor& tensor);
  void* write(const at::Tensor& tensor);
  void* read_write(const at::Tensor& tensor);
  /// The tensors one behind the other. All have the same number of elements and the same dtype.
  const void* read(at::TensorList tensors);
  void* write(at::TensorList tensors);

  /// Copies results to where they belong. Once, after the collective ended well.
  void land();

 private:
  at::Tensor flat_copy(at::TensorList tensors, bool fill);

  bool keep_;
  std::vector<at::Tensor> kept_;
  std::vector<std::pair<at::Tensor, at::Tensor>> returns_;  // from, to
};

}  // namespace cais::pytorch
