// runtime/shm/tuning.hpp — where one way of running a collective becomes faster than another, as
// measured (cais_perf). All ranks derive the same numbers from facts that they share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/shm/layout.hpp"

namespace cais::runtime::shm {

struct Tuning {
  std::size_t inline_bytes;        // contributions up to this travel in the arrival
  std::size_t split_bytes;         // all-reduces above this are split, those up to it are claimed
  std::size_t single_round_bytes;  // ops up to this take one round
  std::size_t round_bytes;         // of a rank's staging buffer, in the rounds of larger ops
  std::size_t stream_bytes;        // tensors of all ranks that outgrow the cache: write past it
  std::size_t piece_bytes_min;     // of a claimed piece
  std::size_t piece_bytes_max;
  std::uint32_t ranges;  // that pieces are claimed from
};

/// For `ranks` ranks that may run on `cores` cores, all together.
Tuning tuning_for(std::uint16_t ranks, std::uint32_t cores);

}  // namespace cais::runtime::shm
