// core/switching/session.hpp — what a switch knows of a session: its programs, the ports of its
// ranks, and for each lane the slots, what they keep, and how far each rank has come. Values only:
// a copy of a session is another session in the same state.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "base/first_bits.hpp"
#include "core/switching/cells.hpp"
#include "core/switching/switch.hpp"
#include "numeric/reduce.hpp"

namespace cais::switching {

/// A descriptor made executable.
struct Program {
  nir::Plan plan;
  std::optional<numeric::Reducer> reducer;  // empty where nothing is added
  std::size_t elements;                     // of one fragment
  std::size_t input_bytes;                  // of a child's contribution to a reduction
  std::size_t output_bytes;                 // of what it comes to: a sum, or a partial (P8)
  std::uint32_t chunks_per_unit;
};

constexpr RankSet only(Rank rank) { return RankSet{1} << rank.value; }
constexpr RankSet all_of(std::uint16_t ranks) { return first_bits(ranks); }
constexpr bool contains(RankSet set, Rank rank) { return (set & only(rank)) != 0; }

/// Calls `visit` with each rank of the set, in order.
template <typename Visit>
void for_each(RankSet set, Visit visit) {
  for (; set != 0; set &= set - 1) visit(Rank(static_cast<std::uint16_t>(std::countr_zero(set))));
}

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
  RankSet contributed = 0;  // ranks below; of ranks elsewhere in the tree, whose payload is here
  RankSet final = 0;        // of the children, those that brought the result (P17)
  CellPool::Index result = CellPool::none;  // of a reduction: the partial, once finished the sum

  bool holds(Seq s) const { return state != State::empty && seq == s; }
  bool has(Rank rank) const { return contains(contributed, rank); }
};

/// How far one child has come in a lane, to see gaps (P11).
struct Progress {
  Seq next_missing{};        // the first seq that not all ranks below it have contributed
  Seq end{};                 // one past the last that they have
  Seq nak_until{};           // a NAK is out for what is missing before it
  std::uint32_t beyond = 0;  // arrivals behind the gap since it was seen
};

struct LaneState {
  LaneState(const SessionConfig& config, Lane which, Seq first);

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
  LanePosition position;           // of the newest fragment that has a slot
  std::vector<Slot> slots;         // 2W
  std::vector<Kept> packets;       // by slot and rank
  std::vector<Progress> progress;  // by child
  /// The queued done that the next one may be merged into, by the child it is for; the last entry
  /// is for dones to several. Positions in TransmitQueue.
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

/// A rank or a switch right below (P9).
struct Child {
  Rank name{};        // the least of the ranks below it
  RankSet below = 0;  // for a rank: itself
};

struct Session {
  explicit Session(const SessionConfig& config);

  LaneState* lane(Lane which) {
    return which.value < lanes.size() && lanes[which.value] ? &*lanes[which.value] : nullptr;
  }
  /// Index in `programs`, or nothing. Cached per lane: neighbours belong to one op.
  std::optional<std::uint32_t> program(LaneState& of, DescriptorHash hash) const;

  bool has_parent() const { return config.place.has_parent; }
  /// What the parent calls this switch.
  Rank name() const { return Rank(static_cast<std::uint16_t>(std::countr_zero(members))); }
  /// The children that some of these ranks are below.
  RankSet children_above(RankSet ranks) const;
  /// Whether all ranks below have contributed: nothing is lacking here, though it may elsewhere.
  bool complete(const Slot& slot) const { return (members & ~slot.contributed) == 0; }
  /// The children that hold a slot for the fragment: some rank below them has contributed (P10).
  RankSet present(const Slot& slot) const { return children_above(slot.contributed); }
  /// P7, P9: whether how the slot stands is for the parent to say.
  bool asks_above(const Slot& slot) const;

  SessionConfig config;
  RankSet members = 0;          // the ranks below this switch
  RankSet children = 0;         // by name
  std::vector<Child> child_of;  // by rank below
  std::vector<Port> ports;      // by name of the child
  RankSet bound = 0;            // children that have a port
  std::optional<Port> parent;   // once it is bound
  std::vector<Program> programs;
  std::map<DescriptorHash, std::uint32_t> by_hash;
  std::vector<std::optional<LaneState>> lanes;
  std::optional<Refusal> refusal;
  bool fenced = false;  // P15: until resume()
};

/// Those who get the payload of a fragment that belongs to `unit`; nobody when it is empty.
RankSet receivers(const nir::Plan& plan, std::uint32_t unit);

}  // namespace cais::switching
