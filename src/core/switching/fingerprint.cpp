// The switch's logical state as one number: what decides which packets it takes and what it
// answers. Not what waits to be polled, nor what it merely reports (counters, events), nor the
// bytes that it keeps.
#include "base/fingerprint.hpp"

#include "core/switching/state.hpp"

namespace cais::switching {
namespace {

void walk_slot(LaneState& lane, const Session& session, const Slot& slot, Fingerprint& walk) {
  walk.number(static_cast<std::uint64_t>(slot.state) |
              std::uint64_t{slot.result != CellPool::none} << 8 |
              std::uint64_t{slot.seq.value} << 32);
  if (slot.state == Slot::State::empty) return;
  walk.number(slot.descriptor.value);
  walk.number(slot.chunk | std::uint64_t{slot.offset} << 32);
  walk.ranks(slot.contributed);
  walk.ranks(slot.final);
  RankSet kept = 0;
  for_each(slot.contributed, [&](Rank rank) {
    if (!lane.kept(slot, rank).empty()) kept |= only(rank);
  });
  // A partial is kept under its child's name, whoever is called so.
  const bool partials = session.config.place.level > 1 &&
                        session.programs[slot.program].plan.combine == nir::Combine::reduce;
  partials ? walk.number(kept) : walk.ranks(kept);
  // Who came first is told in a mismatch, which takes two descriptors.
  if (session.programs.size() > 1) walk.rank(slot.first);
}

void walk_lane(LaneState& lane, const Session& session, Fingerprint& walk) {
  for (const Slot& slot : lane.slots) walk_slot(lane, session, slot, walk);
  for (std::uint16_t name = 0; name < session.config.ranks; ++name) {
    const Rank child = session.config.place.level == 1 ? walk.called(name) : Rank(name);
    if (!contains(session.children, child)) continue;
    const Progress& progress = lane.progress[child.value];
    walk.number(progress.next_missing.value);
    walk.number(progress.end.value);
    walk.number(progress.nak_until.value);
    walk.number(progress.beyond);
  }
}

}  // namespace

void Switch::fingerprint(Fingerprint& walk) const {
  State& state = *state_;
  walk.number(state.slots_open);
  for (const auto& [id, index] : state.by_id) {
    Session& session = *state.sessions[index];
    walk.number(id.value);
    walk.number(session.config.epoch.value | std::uint64_t{session.fenced} << 16);
    walk.number(session.programs.size());
    // Children that are switches have the same names always.
    session.config.place.level > 1 ? walk.number(session.bound) : walk.ranks(session.bound);
    if (session.refusal) {
      wire::Mismatch told;
      wire::parse(session.refusal->payload, told);
      walk.rank(told.first);
      walk.rank(told.second);
      walk.number(session.refusal->seq.value);
      continue;  // it refuses everything, whatever its slots hold
    }
    for (auto& lane : session.lanes) {
      if (lane) walk_lane(*lane, session, walk);
    }
  }
}

}  // namespace cais::switching
