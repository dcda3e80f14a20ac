// A contribution's way into its slot (P5, P6, P12), and a full slot's way out (P8, P10).
#include <algorithm>
#include <bit>
#include <cstring>

#include "core/switching/state.hpp"

namespace cais::switching {
namespace {

/// Whether the contribution is named after who it stands for (a partial after the child that brings
/// it), has the length that it must have, and, when it is said to be the result, comes from where
/// there can be one (P17). A switch brings partials of sums, and of other payloads only those that
/// somebody else is owed than the ranks below it (P9).
Drop fits(const Program& program, std::uint32_t unit, const Arrival& arrival) {
  const nir::Plan& plan = program.plan;
  const bool sums = plan.combine == nir::Combine::reduce;
  const bool final = (arrival.header.flags & wire::flag_final) != 0;
  if (sums && arrival.rank() != arrival.child) return Drop::rank_out_of_range;
  std::size_t bytes = plan.contributes_payload(arrival.rank()) ? plan.fragment_bytes : 0;
  if (sums && !final) {
    bytes = program.input_bytes;
  } else if (!sums && arrival.session->config.place.level > 1 &&
             (receivers(plan, unit) & ~arrival.below) == 0) {
    bytes = 0;
  }
  if (arrival.payload.size() != bytes) return Drop::bad_length;
  const bool can_be = sums && (receivers(plan, unit) & arrival.below) != 0;
  return final && !can_be ? Drop::wrong_kind : Drop::none;
}

/// The unit that chunk and offset name, or nothing when no fragment of the op lies there.
std::optional<std::uint32_t> unit_at(const Program& program, std::uint32_t chunk,
                                     std::uint32_t offset) {
  const nir::Plan& plan = program.plan;
  const std::uint32_t unit = chunk / program.chunks_per_unit;
  if (unit >= plan.units) return std::nullopt;
  if (plan.fragment_bytes == 0) {
    return offset == 0 && chunk % program.chunks_per_unit == 0 ? std::optional(unit) : std::nullopt;
  }
  const std::uint64_t bytes = std::uint64_t{offset} * wire::offset_step;
  const std::uint64_t part = bytes / plan.fragment_bytes;
  if (bytes % plan.fragment_bytes != 0 || part >= plan.fragments_per_unit ||
      part / plan.fragments_per_chunk != chunk % program.chunks_per_unit) {
    return std::nullopt;
  }
  return unit;
}

}  // namespace

Drop Switch::State::contribute(Arrival& arrival) {
  LaneState& lane = *arrival.lane;
  Slot& slot = lane.slot(arrival.seq());
  if (slot.holds(arrival.seq()) && slot.has(arrival.rank())) {
    return repeat(slot, arrival, std::nullopt);
  }
  const std::int32_t ahead =
      distance(lane.progress[arrival.child.value].next_missing, arrival.seq());
  if (ahead < 0) return Drop::stale_seq;
  // A rank that keeps P1 has settled, and so contributed, all up to seq − W; and by P6 whatever
  // else its slot held has been released by then.
  if (ahead >= static_cast<std::int32_t>(arrival.session->config.window_fragments)) {
    return violated(arrival);
  }
  const bool joins = slot.holds(arrival.seq());
  if (!joins && slot.state != Slot::State::empty) {
    return before(arrival.seq(), slot.seq) ? Drop::stale_seq : violated(arrival);
  }
  const Drop drop = joins ? join_slot(slot, arrival) : open_slot(slot, arrival);
  if (drop != Drop::none) return drop;
  add(slot, arrival, arrival.session->programs[slot.program]);
  note_gap(arrival);
  return Drop::none;
}

/// P5: the slot is taken for a newer fragment, by a contribution that fits its program.
Drop Switch::State::open_slot(Slot& slot, const Arrival& arrival) {
  const auto index = arrival.session->program(*arrival.lane, arrival.header.descriptor);
  if (!index) return Drop::unknown_descriptor;
  const Program& program = arrival.session->programs[*index];
  const auto unit = unit_at(program, arrival.header.chunk, arrival.header.offset);
  if (!unit) return Drop::wrong_place;
  if (const Drop drop = fits(program, *unit, arrival); drop != Drop::none) return drop;
  slot = Slot{};
  slot.state = Slot::State::open;
  slot.first = arrival.rank();
  slot.seq = arrival.seq();
  slot.descriptor = arrival.header.descriptor;
  slot.program = *index;
  slot.chunk = arrival.header.chunk;
  slot.offset = arrival.header.offset;
  slot.unit = *unit;
  arrival.lane->position.advance(slot.seq);
  ++slots_open;
  return Drop::none;
}

/// P12: whoever comes later must mean the same op, and the same place in it.
Drop Switch::State::join_slot(const Slot& slot, Arrival& arrival) {
  if (arrival.header.descriptor != slot.descriptor) {
    if (!arrival.session->program(*arrival.lane, arrival.header.descriptor)) {
      return Drop::unknown_descriptor;
    }
    return mismatched(slot, arrival);
  }
  if (arrival.header.chunk != slot.chunk || arrival.header.offset != slot.offset) {
    return Drop::wrong_place;
  }
  return fits(arrival.session->programs[slot.program], slot.unit, arrival);
}

Drop Switch::State::violated(const Arrival& arrival) {
  report(ViolationEvent{arrival.session->config.session, arrival.rank(), arrival.lane->lane,
                        arrival.seq()});
  return Drop::violation;
}

Drop Switch::State::mismatched(const Slot& slot, const Arrival& arrival) {
  const wire::Mismatch mismatch{slot.first, arrival.rank(), slot.descriptor,
                                arrival.header.descriptor};
  return refuse(arrival, mismatch);
}

/// A root refuses the session. Below it the root is told, and its refusal comes back to all: so
/// there is one, and who asks again brings about what was lost of it.
Drop Switch::State::refuse(const Arrival& arrival, const wire::Mismatch& mismatch) {
  Session& session = *arrival.session;
  if (session.has_parent() && !arrival.from_above) {
    Outgoing entry = upward(arrival, wire::Kind::mismatch, arrival.seq(), arrival.rank());
    entry.header.descriptor = mismatch.first_descriptor;
    entry.attach(wire::serialize(mismatch));
    push(entry);
    return Drop::mismatch;
  }
  session.refusal = Refusal{arrival.lane->lane, arrival.seq(), mismatch.first_descriptor,
                            wire::serialize(mismatch)};
  report(MismatchEvent{session.config.session, mismatch.first, mismatch.second,
                       mismatch.first_descriptor, mismatch.second_descriptor});
  send_refusal(arrival, session.children);
  return Drop::mismatch;
}

void Switch::State::keep(Kept& kept, Arrival& arrival) {
  Packet& packet = arrival.packet;
  if (packet.owner) {
    kept.where = static_cast<std::uint32_t>(packet.bytes.data() - packet.owner.data());
    kept.owner = std::move(packet.owner);
    return;
  }
  kept.where = arrival.lane->cells.acquire();
  CAIS_CHECK(kept.where != CellPool::none);  // one cell per slot and rank
  std::memcpy(arrival.lane->cells.at(kept.where), packet.bytes.data(), packet.bytes.size());
}

void Switch::State::add(Slot& slot, Arrival& arrival, const Program& program) {
  const bool sums = program.plan.combine == nir::Combine::reduce;
  const RankSet earlier = slot.contributed;
  slot.contributed |= sums ? arrival.below : only(arrival.rank());
  if ((arrival.header.flags & wire::flag_final) != 0) slot.final |= only(arrival.child);
  const bool full = arrival.session->complete(slot);
  if (!sums) {
    pass_on(slot, arrival, program, earlier);
  } else if (full) {
    reduce(slot, arrival, program);
  } else if (!arrival.payload.empty()) {
    keep(arrival.lane->kept(slot, arrival.rank()), arrival);
  }
  if (full && !arrival.session->has_parent()) finish(slot, arrival);
}

/// P8: all contributions, in the order of the children, in one pass, straight into the packet that
/// goes out. The one that came last is taken from where it came in. P17: where one is the result of
/// an earlier epoch, that is it: the contributions may be gone.
void Switch::State::sum(Slot& slot, const Arrival& arrival, const Program& program) {
  LaneState& lane = *arrival.lane;
  const auto input = [&](Rank child) -> const std::byte* {
    return child == arrival.child ? arrival.payload.data()
                                  : lane.bytes(lane.kept(slot, child)) + wire::header_bytes;
  };
  slot.result = lane.cells.acquire();
  CAIS_CHECK(slot.result != CellPool::none);  // the last contribution took none
  std::byte* const output = lane.cells.at(slot.result) + wire::header_bytes;
  if (slot.final != 0) {
    const Rank who(static_cast<std::uint16_t>(std::countr_zero(slot.final)));
    std::memcpy(output, input(who), program.plan.fragment_bytes);
  } else {
    const std::byte* inputs[ranks_max];
    std::size_t count = 0;
    for_each(arrival.session->children, [&](Rank child) { inputs[count++] = input(child); });
    (*program.reducer)({&output, 1}, {inputs, count}, program.elements);
  }
  lane.drop_all(slot);
}

/// What all contributions come to. A root has the result; below it this is the switch's own
/// contribution, and the slot is finished only when the parent says so (P9).
void Switch::State::reduce(Slot& slot, const Arrival& arrival, const Program& program) {
  const Session& session = *arrival.session;
  const std::size_t bytes = program.plan.fragment_bytes;
  if (bytes != 0) sum(slot, arrival, program);
  if (session.has_parent()) return send_up(slot, arrival, session.name());
  if (bytes != 0) {
    std::byte* packet = arrival.lane->cells.at(slot.result);
    wire::Header header = arrival.header;
    header.kind = wire::Kind::result;
    header.flags = wire::flag_finished;
    header.rank = Rank(0);
    header.level = 0;
    wire::serialize(header, {packet + wire::header_bytes, bytes}, session.config.keys,
                    std::span<std::byte, wire::header_bytes>(packet, wire::header_bytes),
                    arrival.lane->position.round_of(header.seq));
  }
  slot.state = Slot::State::finished;
  const RankSet targets = session.children_above(receivers(program.plan, slot.unit));
  if (targets != 0) send_result(slot, arrival, targets);
  send_done(slot, arrival, session.children & ~targets);
}

/// P10: a payload goes at once to all who should have it and have contributed themselves; the
/// others get it when they do, for only then is there a place where they want it. It is kept for
/// those who will miss it. Whoever is sent the payload that fills the slot reads from its flag that
/// it is full. In a tree it goes up as well: it is the parent's acknowledgement (P9).
void Switch::State::pass_on(Slot& slot, Arrival& arrival, const Program& program,
                            RankSet contributed_before) {
  const Session& session = *arrival.session;
  const bool full = session.complete(slot) && !session.has_parent();
  if (full) slot.state = Slot::State::finished;
  LaneState& lane = *arrival.lane;
  const RankSet self = only(arrival.rank());
  const RankSet entitled = receivers(program.plan, slot.unit);
  RankSet targets = 0;
  if (!arrival.payload.empty() && (entitled & ~self) != 0) {
    keep(lane.kept(slot, arrival.rank()), arrival);
    mark_as_result(slot, arrival, arrival.rank());
    targets = session.children_above(entitled & ~arrival.below) & session.present(slot);
    if (targets != 0) send_payload(arrival, arrival.rank(), targets);
  }
  if ((entitled & arrival.below) != 0 && (contributed_before & arrival.below) == 0) {
    for_each(slot.contributed & ~arrival.below, [&](Rank whose) {
      if (!lane.kept(slot, whose).empty()) send_payload(arrival, whose, only(arrival.child));
    });
  }
  if (session.has_parent()) send_up(slot, arrival, arrival.rank());
  if (full) send_done(slot, arrival, session.children & ~targets);
}

/// Once `seq` is finished, every rank has settled seq − W (P1), and nobody can ask for it any more.
void Switch::State::finish(Slot& slot, const Arrival& arrival) {
  --slots_open;
  ++counters.slots_finished;
  LaneState& lane = *arrival.lane;
  const Seq settled_by_all = slot.seq - arrival.session->config.window_fragments;
  Slot& old = lane.slot(settled_by_all);
  if (old.state != Slot::State::finished || old.seq != settled_by_all) return;
  lane.drop_all(old);
  if (old.result != CellPool::none) lane.cells.release(old.result);
  old = Slot{};
}

}  // namespace cais::switching
