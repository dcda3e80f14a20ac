// core/switching/limits.hpp — the bounds of a switch, and how they hang together.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/types.hpp"

namespace cais::switching {

inline constexpr std::uint32_t window_fragments_max = 4096;                    // W
inline constexpr std::uint32_t slots_per_lane_max = 2 * window_fragments_max;  // P5
inline constexpr std::uint32_t payload_bytes_max = 65'000;                     // one UDP datagram
inline constexpr std::size_t lanes_max = 64;  // a set of lanes is one 64-bit word
inline constexpr std::size_t sessions_max = 4096;
inline constexpr std::size_t descriptors_per_session_max = 65'536;
inline constexpr std::size_t transmits_max = 65'536;  // packets that wait to be polled
inline constexpr std::size_t events_max = 256;  // events that wait to be polled; more are lost
inline constexpr std::uint8_t levels_max = 3;   // of a tree of switches (P9)
/// Later fragments of a rank that may overtake an earlier one before a NAK goes out (P11).
inline constexpr std::uint32_t reorder_tolerance_packets = 3;

static_assert(std::has_single_bit(slots_per_lane_max), "a slot's index is a mask");
static_assert(slots_per_lane_max < (1u << 31), "serial comparison needs half the seq space");
static_assert(ranks_max <= 64, "a slot keeps its ranks in one word");

}  // namespace cais::switching
