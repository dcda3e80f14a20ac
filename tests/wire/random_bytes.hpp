// tests/wire/random_bytes.hpp — bytes from a seed.
#pragma once

#include <cstddef>
#include <vector>

#include "base/rng.hpp"

namespace cais::wire {

inline std::vector<std::byte> random_bytes(Rng& rng, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.next());
  return bytes;
}

}  // namespace cais::wire
