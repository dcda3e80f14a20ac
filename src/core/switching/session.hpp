// core/switching/session.hpp — what a switch knows of a session: its programs, the ports of its
// ranks, and for each lane the slots, what they keep, and how far each rank has come. Values only:
// a copy of a session is another session in the same state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "core/switching/cells.hpp"
#include "core/switching/switch.hpp"
#include "numeric/reduce.hpp"

namespace cais::switching {

/// A descriptor made executable.
struct Program {
  nir::Plan plan;
  std::optional<numeric::Reducer> reducer;  // empty where nothing is added
  std::size_t elements;                     // of one fragment
  std::uint32_t chunks_per_unit;
};

/// Ranks that a packet goes to. No other sets are needed, and all of them are runs in the doubled
/// list of ports.
struct Targets {
  enum class Set : std::uint8_t { nobody, all, only, all_but };
  Set set = Set::nobody;
  Rank rank{};  // of `only` and `all_but`
  bool operator==(const Targets&) const = default;
};

/// A packet that a slot keeps: in the buffer that it came in, or in a cell of ours. Empty: neither.
struct Kept {
  BufferRef owner;
  std::uint32_t where = CellPool::none;  // offset in the buffer, or index of the cell

  bool empty() const { return where == CellPool::none; }
};

/// One fragment of one op under way (P5). `empty` slots keep nothing and may be taken.
struct Slot {
  enum class State : std::uint8_t { empty, open, finished };
  State state = State::empty;
  Rank first{};  // who fixed the descriptor (P12)
  Seq seq{};
  DescriptorHash descriptor{};
  std::uint32_t program = 0;  // index in Session::programs
  std::uint32_t chunk = 0;    // place of the fragment in its op, as in the header
  std::uint32_t offset = 0;
  std::uint32_t unit = 0;
  std::uint64_t contributed = 0;            // bit r: rank r
  CellPool::Index result = CellPool::none;  // of a reduction, once finished

  bool holds(Seq s) const { return state != State::empty && seq == s; }
  bool has(Rank rank) const { return (contributed >> rank.value & 1) != 0; }
};

/// How far one rank has come in a lane, to see gaps (P11).
struct Progress {
  Seq next_missing{};        // the first seq that the rank has not contributed
  Seq end{};                 // one past the last that it has
  Seq nak_until{};           // a NAK is out for what is missing before it
  std::uint32_t beyond = 0;  // arrivals behind the gap since it was seen
};

struct LaneState {
  LaneState(const SessionConfig& config, Lane which);

  Slot& slot(Seq seq) { return slots[seq.value & (slots.size() - 1)]; }
  Kept& kept(const Slot& of, Rank rank) {
    return packets[static_cast<std::size_t>(&of - slots.data()) * progress.size() + rank.value];
  }
  /// Where a kept packet's header begins.
  std::byte* bytes(const Kept& packet) {
    return packet.owner ? packet.owner.data() + packet.where : cells.at(packet.where);
  }
  void drop(Kept& packet);
  void drop_all(Slot& slot);

  Lane lane;
  std::vector<Slot> slots;         // 2W
  std::vector<Kept> packets;       // by slot and rank
  std::vector<Progress> progress;  // by rank
  /// The queued done that the next one may be merged into, by the rank it is for; the last entry
  /// is for dones to several ranks. Positions in TransmitQueue.
  std::vector<std::uint64_t> done_at;
  DescriptorHash last_descriptor{};  // a cache of the look-up in Session::by_hash
  std::uint32_t last_program = 0;
  CellPool cells;
};

/// P12: the first mismatch of a session; it refuses everything from then on.
struct Refusal {
  Lane lane;
  Seq seq;
  DescriptorHash descriptor;
  std::array<std::byte, wire::mismatch_bytes> payload;
};

struct Session {
  explicit Session(const SessionConfig& config);

  LaneState* lane(Lane which) {
    return which.value < lanes.size() && lanes[which.value] ? &*lanes[which.value] : nullptr;
  }
  /// Index in `programs`, or nothing. Cached per lane: neighbours belong to one op.
  std::optional<std::uint32_t> program(LaneState& of, DescriptorHash hash) const;
  std::span<const Port> ports_of(Targets targets) const;

  SessionConfig config;
  std::vector<Port> ports;  // by rank, twice over: "all but r" begins behind r
  std::uint64_t bound = 0;  // bit r: rank r has a port
  std::vector<Program> programs;
  std::map<DescriptorHash, std::uint32_t> by_hash;
  std::vector<std::optional<LaneState>> lanes;
  std::optional<Refusal> refusal;
};

/// Those who get the payload of a fragment that belongs to `unit`; nobody when it is empty.
Targets receivers(const nir::Plan& plan, std::uint32_t unit);
/// The same without `rank`, to whom its own payload is no news.
Targets without(Targets targets, Rank rank);
/// Everybody else.
Targets others(Targets targets);
bool contains(Targets targets, Rank rank);

}  // namespace cais::switching
