// runtime/udp/random.hpp — numbers that nobody can guess: session ids, and seeds of packet tags.
#pragma once

#include <cstdint>

namespace cais::runtime {

/// 64 bits from the kernel.
std::uint64_t random_word();

}  // namespace cais::runtime
