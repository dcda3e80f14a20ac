// torch_cais/csrc/store_rendezvous.hpp — the ranks of a group meet in the store that PyTorch gave
// it.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "runtime/rendezvous.hpp"

namespace cais::pytorch {

class StoreRendezvous final : public runtime::Rendezvous {
 public:
  /// `store` must be the group's own (PyTorch prefixes it with the group's name).
  explicit StoreRendezvous(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}

  Result<void> set(std::string_view key, std::string_view value) override;
  Result<std::string> get(std::string_view key, Duration timeout) override;

 private:
  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace cais::pytorch
