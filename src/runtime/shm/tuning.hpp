// runtime/shm/tuning.hpp — where one way of running a collective becomes faster than another, as
// measured (bench/shm_bench.cpp). All ranks derive the same numbers from facts that they share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/shm/layout.hpp"

namespace cais::runtime::shm {

struct Tuning {
  std::size_t inline_bytes;     // contributions up to this travel in the arrival
  std::size_t exchange_bytes;   // all-reduces up to this are reduced by every rank for itself
  std::size_t split_bytes;      // all-reduces above this are split: each rank reduces its part
  std::size_t round_bytes;      // of a staging buffer, at most
  std::size_t stream_bytes;     // tensors of all ranks that outgrow the cache: write past it
  std::size_t piece_bytes_min;  // of a claimed piece
  std::size_t piece_bytes_max;
  std::uint32_t ranges;  // that pieces are claimed from
};

Tuning tuning_for(std::uint16_t ranks, std::uint32_t cores);

}  // namespace cais::runtime::shm
