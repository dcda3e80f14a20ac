// The packets of a small world and its states as numbers: the same for those that differ only in
// who is who, where ranks are alike.
#include <algorithm>

#include "base/check.hpp"
#include "base/fingerprint.hpp"
#include "sim/check/model.hpp"

namespace cais::sim {

wire::Header header_of(std::span<const std::byte> packet) {
  wire::Header header;
  CAIS_CHECK(wire::parse(packet, header) == wire::ParseError::none);
  return header;
}

void Model::send(State& state, Endpoint from, Endpoint to, std::vector<std::byte> bytes) {
  const std::uint32_t packet = number_of(from, to, std::move(bytes));
  fresh_.push_back(packet);
  if (state.sent.has(packet)) return;
  state.sent.insert(packet);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    state.sums[i] += packets_[packet].fingerprints[i];
  }
}

std::uint32_t Model::number_of(Endpoint from, Endpoint to, std::vector<std::byte> bytes) {
  std::string key(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  key.push_back(static_cast<char>(from));
  key.push_back(static_cast<char>(to));
  const auto [found, is_new] =
      numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(packets_.size()));
  if (!is_new) return found->second;
  PacketKind packet{from, to, std::move(bytes), {}};
  for (const auto& names : names_) packet.fingerprints.push_back(packet_fingerprint(packet, names));
  packets_.push_back(std::move(packet));
  return found->second;
}

/// Whether the fragment that the packet speaks of is added up.
bool Model::sums(const PacketKind& packet, const wire::Header& header) const {
  Rank rank = header.rank;
  if (is_rank(packet.from)) rank = Rank(static_cast<std::uint16_t>(packet.from));
  if (is_rank(packet.to)) rank = Rank(static_cast<std::uint16_t>(packet.to));
  const auto place = script_->place(rank, header.lane, header.seq);
  return place && script_->calls(rank)[place->op]->plan.combine == nir::Combine::reduce;
}

/// What the packet says; its payload follows from that, or the oracle has complained.
std::uint64_t Model::packet_fingerprint(const PacketKind& packet,
                                        std::span<const std::uint16_t> names) const {
  const wire::Header header = header_of(packet.bytes);
  const std::span<const std::byte> payload = std::span(packet.bytes).subspan(wire::header_bytes);
  const bool adds = sums(packet, header);
  Fingerprint walk(names);
  walk.number(header.epoch.value);
  for (const Endpoint end : {packet.from, packet.to}) {
    is_rank(end) ? walk.rank(Rank(static_cast<std::uint16_t>(end)))
                 : walk.number(~std::uint64_t{end});
  }
  walk.number(static_cast<std::uint64_t>(header.kind) | std::uint64_t{header.flags} << 8 |
              std::uint64_t{header.level} << 16 | std::uint64_t{header.seq.value} << 32);
  walk.number(header.descriptor.value);
  wire::Want want;
  wire::Mismatch told;
  if (header.kind == wire::Kind::waiting) {
    walk.ranks(wire::named_ranks(header));
  } else {
    walk.number(header.chunk | std::uint64_t{header.offset} << 32);
  }
  // Rank 0 stands for a sum, a partial has the name of a switch, whoever is called so.
  const bool of_rank = header.kind != wire::Kind::done && header.kind != wire::Kind::nak &&
                       header.kind != wire::Kind::mismatch;
  const bool asks = header.kind == wire::Kind::want || header.kind == wire::Kind::waiting;
  if (of_rank) adds && !asks ? walk.number(0) : walk.rank(header.rank);
  if (header.kind == wire::Kind::want && wire::parse(payload, want)) {
    adds ? walk.number(want.ranks) : walk.ranks(want.ranks);
  } else if (header.kind == wire::Kind::mismatch && wire::parse(payload, told)) {
    walk.rank(told.first);
    walk.rank(told.second);
  }
  return walk.value();
}

std::uint64_t Model::fingerprint(const State& state) const {
  std::uint64_t least = ~std::uint64_t{0};
  for (std::size_t i = 0; i < names_.size(); ++i) {
    Fingerprint walk(names_[i]);
    for (std::uint16_t name = 0; name < world_.ranks; ++name) {
      const Rank rank = walk.called(name);
      state.agents[rank.value].fingerprint(state.clocks[rank.value], walk);
    }
    for (const switching::Switch& machine : state.switches) machine.fingerprint(walk);
    walk.number(state.sums[i]);
    least = std::min(least, walk.value());
  }
  return least;
}

}  // namespace cais::sim
