#include "staging.hpp"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

namespace cais::pytorch {
namespace {

bool is_flat(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.is_contiguous() && !tensor.is_conj() &&
         !tensor.is_neg();
}

std::byte* memory_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.unsafeGetTensorImpl()->mutable_data());
}

/// Whether the tensors already lie one behind the other.
bool are_adjacent(at::TensorList tensors) {
  const std::byte* expected = nullptr;
  for (const at::Tensor& tensor : tensors) {
    if (!is_flat(tensor)) return false;
    if (expected != nullptr && memory_of(tensor) != expected) return false;
    expected = memory_of(tensor) + tensor.nbytes();
  }
  return true;
}

at::Tensor empty_on_cpu(const at::Tensor& like, at::IntArrayRef sizes) {
  return at::empty(sizes, like.options()
                              .device(at::kCPU)
                              .memory_format(at::MemoryFormat::Contiguous)
                              .pinned_memory(!like.device().is_cpu()));
}

}  // namespace

const void* Staging::read(const at::Tensor& tensor) { return read(at::TensorList(tensor)); }

void* Staging::write(const at::Tensor& tensor) { return write(at::TensorList(tensor)); }

void* Staging::read_write(const at::Tensor& tensor) {
  if (is_flat(tensor)) {
    if (keep_) kept_.push_back(tensor);
    return memory_of(tensor);
  }
  const at::Tensor copy = flat_copy(tensor, true).view(tensor.sizes());
  returns_.emplace_back(copy, tensor);
  return memory_of(copy);
}

const void* Staging::read(at::TensorList tensors) {
  if (are_adjacent(tensors)) {
    if (keep_) kept_.insert(kept_.end(), tensors.begin(), tensors.end());
    return memory_of(tensors.front());
  }
  kept_.push_back(flat_copy(tensors, true));
  return memory_of(kept_.back());
}

void* Staging::write(at::TensorList tensors) {
  if (are_adjacent(tensors)) {
    if (keep_) kept_.insert(kept_.end(), tensors.begin(), tensors.end());
    return memory_of(tensors.front());
  }
  const at::Tensor flat = flat_copy(tensors, false);
  const std::int64_t elements = tensors.front().numel();
  std::int64_t at = 0;
  for (const at::Tensor& tensor : tensors) {
    returns_.emplace_back(flat.narrow(0, at, elements).view(tensor.sizes()), tensor);
    at += elements;
  }
  return memory_of(flat);
}

void Staging::land() {
  if (returns_.empty()) return;
  const c10::NoGradGuard no_grad;
  for (const auto& [from, to] : returns_) to.copy_(from);
  returns_.clear();
}

at::Tensor Staging::flat_copy(at::TensorList tensors, bool fill) {
  const c10::NoGradGuard no_grad;
  const std::int64_t elements = tensors.front().numel();
  const auto count = static_cast<std::int64_t>(tensors.size());
  const at::Tensor flat = empty_on_cpu(tensors.front(), {elements * count});
  if (fill) {
    std::int64_t at = 0;
    for (const at::Tensor& tensor : tensors) {
      flat.narrow(0, at, elements).view(tensor.sizes()).copy_(tensor);
      at += elements;
    }
  }
  return flat;
}

}  // namespace cais::pytorch
