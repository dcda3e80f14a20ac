// runtime/shm/layout.hpp — the memory that the ranks of a group share, word by word. It is a memfd
// of zeros at first, and zeros are a valid state: nobody has arrived, nothing is filled.
//
//   Header | Arrival [2][ranks] | Descriptor [2][ranks] | Progress [ranks] | Claim [claims_max] |
//   Done | staging [ranks][staging_bytes]
//
// Every word has one writer, its rank, but for those of Header, Claim and Done.
// Counters only grow, so that a reader that is late or early compares with >=. Nobody resets
// anything.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/types.hpp"
#include "wire/descriptor.hpp"

namespace cais::runtime::shm {

inline constexpr std::size_t line_bytes = 64;
inline constexpr std::size_t page_bytes = 4096;

/// Two generations, by op_seq mod 2: a rank arrives at op s + 2 when it has finished s + 1, so when
/// all have arrived at s + 1, so when all have finished s.
inline constexpr std::size_t arrival_generations = 2;
/// A rank's staging memory is cut into as many buffers as rounds of the op under way fit into it,
/// within these bounds. Round k + buffers is filled when all have consumed round k.
inline constexpr std::size_t staging_buffers_min = 2;
inline constexpr std::size_t staging_buffers_max = 8;
/// Payload that travels in the arrival itself.
inline constexpr std::size_t inline_bytes_max = 16 * 1024;
/// Ranges that the pieces of a round are claimed from, each with its own counter.
inline constexpr std::size_t claims_max = 16;

/// What sleepers sleep on. Whoever changes what they wait for rings (GroupMemory::ring).
struct Bell {
  std::atomic<std::uint32_t> rings;
  std::atomic<std::uint32_t> sleepers;
};

/// Why the group ended. The first to claim it writes it.
struct alignas(line_bytes) Header {
  std::atomic<std::uint32_t> failure_claimed;
  std::atomic<std::uint32_t> failed;  // 1 + ErrorCode, once `message` stands; 0: all is well
  std::uint32_t message_bytes;
  std::array<char, 3 * 1024> message;
};

/// Where a rank's tensors lie in its arena; 0: not there.
struct MappedTensors {
  std::uint64_t send_offset_plus_1;
  std::uint64_t recv_offset_plus_1;
};

/// A rank's arrival at an op. A small op is all in here: in its first line, if it is very small.
struct alignas(line_bytes) Arrival {
  std::atomic<std::uint64_t> op;  // op_seq + 1
  std::uint64_t descriptor_hash;
  union {
    MappedTensors mapped;  // of an op that is too large to travel inline
    std::byte payload[inline_bytes_max + line_bytes - 16];
  };
};
static_assert(offsetof(Arrival, payload) == 16 && sizeof(Arrival) == inline_bytes_max + line_bytes);

/// The 128 bytes behind Arrival::descriptor_hash: read only to explain a mismatch.
struct alignas(line_bytes) ArrivalDescriptor {
  wire::CommDescriptor descriptor;
};

/// How far a rank is, in rounds, counted over all ops of the group.
struct alignas(line_bytes) Progress {
  std::atomic<std::uint64_t> filled;    // its staging buffers hold the rounds before this one
  std::atomic<std::uint64_t> reduced;   // its part of the rounds before is reduced
  std::atomic<std::uint64_t> consumed;  // it has taken all that it needs of the rounds before
  std::atomic<std::uint32_t> left;      // 1: it has left the group in order
  std::atomic<std::uint32_t> core;      // 1 + where it ran when it last had to wait; a hint
  Bell bell;                            // of this rank's Progress and Arrival
};
static_assert(sizeof(Progress) == line_bytes);

/// A tag (the round) in the upper bits and a count in the lower ones: a count of an older round
/// reads as "none yet". Rounds are told apart for 2^40 of them.
inline constexpr unsigned count_bits = 24;
constexpr std::uint64_t tagged(std::uint64_t round, std::uint64_t count) {
  return round << count_bits | count;
}

struct alignas(line_bytes) Claim {
  std::atomic<std::uint64_t> next;  // tagged: the next piece of the range that nobody has claimed
};

struct alignas(line_bytes) Done {
  std::atomic<std::uint64_t> pieces;  // tagged: pieces of the round that are reduced
  Bell bell;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");

}  // namespace cais::runtime::shm
