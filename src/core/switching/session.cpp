#include "core/switching/session.hpp"

namespace cais::switching {

LaneState::LaneState(const SessionConfig& config, Lane which, Seq first)
    : lane(which),
      position(first),
      slots(std::size_t{2} * config.window_fragments),
      packets(slots.size() * config.ranks),
      progress(config.ranks, Progress{first, first, first}),
      done_at(config.ranks + 1u),
      cells(config.payload_bytes_max, packets.size()) {}

void LaneState::drop(Kept& packet) {
  if (packet.empty()) return;
  if (!packet.owner) cells.release(packet.where);
  packet = Kept{};
}

void LaneState::drop_all(Slot& slot) {
  for_each(slot.contributed, [&](Rank rank) { drop(kept(slot, rank)); });
}

Session::Session(const SessionConfig& c) : config(c), child_of(c.ranks), ports(c.ranks) {
  std::vector<RankSet>& sets = config.place.children;
  for (std::uint16_t r = 0; c.place.children.empty() && r < c.ranks; ++r) {
    sets.push_back(only(Rank(r)));
  }
  for (const RankSet set : sets) {
    const Child child{Rank(static_cast<std::uint16_t>(std::countr_zero(set))), set};
    members |= set;
    children |= only(child.name);
    for_each(set, [&](Rank rank) { child_of[rank.value] = child; });
  }
  lanes.resize(c.lanes);
  for (std::uint8_t l = 0; l < c.lanes; ++l) {
    if ((c.lanes_served >> l & 1) != 0) lanes[l].emplace(c, Lane(l), c.first_seq);
  }
}

std::optional<std::uint32_t> Session::program(LaneState& of, DescriptorHash hash) const {
  if (of.last_descriptor == hash && of.last_program < programs.size()) return of.last_program;
  const auto found = by_hash.find(hash);
  if (found == by_hash.end()) return std::nullopt;
  of.last_descriptor = hash;
  of.last_program = found->second;
  return found->second;
}

RankSet Session::children_above(RankSet ranks) const {
  if (config.place.level == 1) return ranks & members;
  RankSet above = 0;
  for_each(children, [&](Rank child) {
    if ((child_of[child.value].below & ranks) != 0) above |= only(child);
  });
  return above;
}

/// Sums go up when they are complete; payloads one by one, so that the parent knows what is
/// lacking.
bool Session::asks_above(const Slot& slot) const {
  if (!has_parent() || slot.state != Slot::State::open) return false;
  return complete(slot) || programs[slot.program].plan.combine != nir::Combine::reduce;
}

RankSet receivers(const nir::Plan& plan, std::uint32_t unit) {
  if (plan.unit_bytes == 0) return 0;
  const RankSet root = only(Rank(plan.root));
  switch (plan.deliver) {
    case nir::Deliver::all:
      return all_of(plan.ranks) & (plan.combine == nir::Combine::route ? ~root : ~RankSet{0});
    case nir::Deliver::owner:
      return only(Rank(static_cast<std::uint16_t>(unit)));
    case nir::Deliver::root:
      return root;
  }
  return 0;
}

}  // namespace cais::switching
