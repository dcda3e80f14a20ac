// runtime/rendezvous.hpp — where the ranks of a group find each other: a key-value store that
// somebody else runs (c10d's store under PyTorch, io's small TCP store for C programs).
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace cais::runtime {

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  /// Any bytes may be stored. A key is set once, by one rank.
  virtual Result<void> set(std::string_view key, std::string_view value) = 0;
  /// Waits until the key is there; timed_out names the key.
  virtual Result<std::string> get(std::string_view key, Duration timeout) = 0;
};

}  // namespace cais::runtime
