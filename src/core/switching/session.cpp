#include "core/switching/session.hpp"

#include <bit>

namespace cais::switching {

LaneState::LaneState(const SessionConfig& config, Lane which)
    : lane(which),
      slots(std::size_t{2} * config.window_fragments),
      packets(slots.size() * config.ranks),
      progress(config.ranks, Progress{config.first_seq, config.first_seq, config.first_seq}),
      done_at(config.ranks + 1u),
      cells(config.payload_bytes_max, packets.size()) {}

void LaneState::drop(Kept& packet) {
  if (packet.empty()) return;
  if (!packet.owner) cells.release(packet.where);
  packet = Kept{};
}

void LaneState::drop_all(Slot& slot) {
  for (std::uint64_t left = slot.contributed; left != 0; left &= left - 1) {
    drop(kept(slot, Rank(static_cast<std::uint16_t>(std::countr_zero(left)))));
  }
}

Session::Session(const SessionConfig& c) : config(c), ports(std::size_t{2} * c.ranks) {
  lanes.resize(c.lanes);
  for (std::uint8_t l = 0; l < c.lanes; ++l) {
    if ((c.lanes_served >> l & 1) != 0) lanes[l].emplace(c, Lane(l));
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

std::span<const Port> Session::ports_of(Targets targets) const {
  const std::span<const Port> twice = ports;
  switch (targets.set) {
    case Targets::Set::nobody:
      return {};
    case Targets::Set::all:
      return twice.first(config.ranks);
    case Targets::Set::only:
      return twice.subspan(targets.rank.value, 1);
    case Targets::Set::all_but:
      return twice.subspan(targets.rank.value + 1u, config.ranks - 1u);
  }
  return {};
}

Targets receivers(const nir::Plan& plan, std::uint32_t unit) {
  using Set = Targets::Set;
  if (plan.unit_bytes == 0) return {};
  switch (plan.deliver) {
    case nir::Deliver::all:
      if (plan.combine == nir::Combine::route) return {Set::all_but, Rank(plan.root)};
      return {Set::all, {}};
    case nir::Deliver::owner:
      return {Set::only, Rank(static_cast<std::uint16_t>(unit))};
    case nir::Deliver::root:
      return {Set::only, Rank(plan.root)};
  }
  return {};
}

Targets without(Targets targets, Rank rank) {
  using Set = Targets::Set;
  if (targets.set == Set::all) return {Set::all_but, rank};
  if (targets.set == Set::only && targets.rank == rank) return {};
  return targets;
}

Targets others(Targets targets) {
  using Set = Targets::Set;
  switch (targets.set) {
    case Set::nobody:
      return {Set::all, {}};
    case Set::all:
      return {};
    case Set::only:
      return {Set::all_but, targets.rank};
    case Set::all_but:
      return {Set::only, targets.rank};
  }
  return {};
}

bool contains(Targets targets, Rank rank) {
  using Set = Targets::Set;
  switch (targets.set) {
    case Set::nobody:
      return false;
    case Set::all:
      return true;
    case Set::only:
      return targets.rank == rank;
    case Set::all_but:
      return targets.rank != rank;
  }
  return false;
}

}  // namespace cais::switching
