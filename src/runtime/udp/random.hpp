// runtime/udp/random.hpp — numbers that nobody can guess: session ids, and secrets.
#pragma once

#include <cstdint>

#include "wire/keys.hpp"

namespace cais::runtime {

/// 64 bits from the kernel.
std::uint64_t random_word();
wire::Secret random_secret();

}  // namespace cais::runtime
