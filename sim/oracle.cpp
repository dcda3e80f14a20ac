#include "sim/oracle.hpp"

#include <algorithm>

#include "base/first_bits.hpp"

namespace cais::sim {
namespace {

std::string name(Rank rank) { return "rank " + std::to_string(rank.value); }

}  // namespace

Oracle::Oracle(const Script& script, const Tree& tree)
    : script_(&script),
      tree_(&tree),
      everyone_(first_bits(script.ranks())),
      lanes_(tree.nodes().size()),
      done_(script.ranks()) {
  for (std::size_t which = 0; which < lanes_.size(); ++which) {
    if (!tree.uses(which)) continue;
    lanes_[which].resize(script.lanes());
    for (std::uint8_t l = 0; l < script.lanes(); ++l) {
      lanes_[which][l].contributed.resize(script.length(Lane(l)));
      lanes_[which][l].closed.resize(script.length(Lane(l)));
      lanes_[which][l].ever_finished.resize(script.length(Lane(l)));
    }
  }
}

void Oracle::complain(std::string what) {
  if (complaint_.empty()) complaint_ = std::move(what);
}

std::uint64_t Oracle::taken(std::size_t which, Lane of, Seq seq) const {
  const auto& of_lane = lane(which, of).contributed;
  const std::size_t at = script_->index(seq);
  return at < of_lane.size() ? of_lane[at] : 0;
}

bool Oracle::contributed(std::size_t which, Rank rank, Lane of, Seq seq) const {
  return (taken(which, of, seq) >> rank.value & 1) != 0;
}

bool Oracle::finished(Lane of, Seq seq) const { return taken(tree_->root(), of, seq) == everyone_; }

bool Oracle::ever_finished(Lane of, Seq seq) const {
  const auto& of_lane = at_root(of).ever_finished;
  const std::size_t at = script_->index(seq);
  return at < of_lane.size() && of_lane[at];
}

bool Oracle::begins(std::size_t which, Lane of, Seq from) {
  const std::vector<bool>& ever_finished = at_root(of).ever_finished;
  const std::size_t at = script_->index(from);
  const auto all_before = ever_finished.begin() + static_cast<std::ptrdiff_t>(at);
  if (at > ever_finished.size() ||
      std::find(ever_finished.begin(), all_before, false) != all_before) {
    complain("P17: an epoch begins at seq " + std::to_string(from.value) +
             ", and some fragment before that was never finished");
    return false;
  }
  LaneState& of_lane = lane(which, of);
  const bool early =
      of_lane.finished < of_lane.ever_finished.size() && of_lane.ever_finished[of_lane.finished];
  for (std::size_t i = at; i < of_lane.contributed.size(); ++i) {
    of_lane.contributed[i] = 0;
    of_lane.closed[i] = false;
  }
  of_lane.begin = of_lane.finished = at;
  of_lane.open = 0;
  return early;
}

std::size_t Oracle::open_slots(std::size_t which, std::uint64_t lanes_served) const {
  std::size_t open = 0;
  for (std::size_t l = 0; l < lanes_[which].size(); ++l) {
    if ((lanes_served >> l & 1) != 0) open += lanes_[which][l].open;
  }
  return open;
}

bool Oracle::over() const {
  for (std::uint16_t rank = 0; rank < script_->ranks(); ++rank) {
    if (!refused(Rank(rank)) && done_[rank] < script_->calls(Rank(rank)).size()) return false;
  }
  return true;
}

void Oracle::rank_sends(Rank rank, const wire::Header& header, std::span<const std::byte> payload) {
  const auto what = [&] { return name(rank) + " sends " + wire::to_string(header); };
  const auto place = script_->place(rank, header.lane, header.seq);
  if (!place) return complain(what() + ": it calls nothing that lies there");
  const std::size_t at = script_->index(header.seq);
  if (at < at_root(header.lane).begin) {
    complain("P17: " + what() + ": that lies before the epoch");
  }
  if (at >= at_root(header.lane).finished + script_->window()) {
    complain("P1: " + what() + ": it cannot have settled the fragment a window before");
  }
  const Job& job = *script_->calls(rank)[place->op];
  if (header.rank != rank || header.descriptor != job.submits[rank.value].descriptor) {
    return complain(what() + ": not its own name, or not the op that it calls there");
  }
  if (header.kind == wire::Kind::contribution) {
    check_contribution(rank, job, *place, header, payload);
  } else if (header.kind != wire::Kind::want) {
    complain(what() + ": ranks do not send this");
  }
}

void Oracle::check_contribution(Rank rank, const Job& job, const Script::Place& place,
                                const wire::Header& header, std::span<const std::byte> payload) {
  const nir::Extent extent = job.plan.extent(place.fragment);
  if ((header.flags & wire::flag_final) != 0) {
    const bool can_be = job.plan.combine == nir::Combine::reduce &&
                        job.plan.receives_payload(rank, extent.unit) &&
                        ever_finished(header.lane, header.seq);
    if (!can_be ||
        !is_fragment(payload, job.expected[rank.value], extent.offset, job.plan, extent.bytes)) {
      complain("P17: " + name(rank) + " sends " + wire::to_string(header) + ": not the sum");
    }
    return;
  }
  const bool loads = job.plan.contributes_payload(rank);
  const bool right =
      loads ? is_fragment(payload, job.inputs[rank.value],
                          extent.unit * job.plan.unit_bytes + extent.offset, job.plan, extent.bytes)
            : payload.empty();
  if (!right) {
    complain("P2: " + name(rank) + " sends " + wire::to_string(header) +
             ": not the bytes of its fragment, padded with zeros");
  }
  if (header.chunk != job.plan.chunk_of(place.fragment) ||
      header.offset != extent.offset / wire::offset_step) {
    complain(name(rank) + " sends " + wire::to_string(header) + ": not the fragment's coordinates");
  }
}

/// A switch brings the sum of all below it at once, and payloads one by one (P9).
void Oracle::switch_takes(std::size_t which, const wire::Header& header) {
  const auto place = script_->place(header.rank, header.lane, header.seq);
  LaneState& of_lane = lane(which, header.lane);
  const std::size_t at = script_->index(header.seq);
  if (!place) {
    return complain("a switch takes seq " + std::to_string(header.seq.value) + " of " +
                    name(header.rank) + ", which nobody calls");
  }
  const bool sums = script_->calls(header.rank)[place->op]->plan.combine == nir::Combine::reduce;
  std::uint64_t& who = of_lane.contributed[at];
  if (who == 0) ++of_lane.open;
  who |= sums ? tree_->below_child(which, header.rank) : 1ull << header.rank.value;
  if (which != tree_->root()) return;
  if (who == everyone_) {
    close(which, header.lane, header.seq);
    of_lane.ever_finished[at] = true;
  }
  while (of_lane.finished < of_lane.contributed.size() &&
         of_lane.contributed[of_lane.finished] == everyone_) {
    ++of_lane.finished;
  }
}

/// The switch knows that the fragment is finished: its slot is open no more.
void Oracle::close(std::size_t which, Lane of, Seq seq) {
  LaneState& of_lane = lane(which, of);
  const std::size_t at = script_->index(seq);
  if (at >= of_lane.closed.size() || of_lane.contributed[at] == 0 || of_lane.closed[at]) return;
  of_lane.closed[at] = true;
  --of_lane.open;
}

void Oracle::switch_hears(std::size_t which, const wire::Header& header) {
  const bool done = header.kind == wire::Kind::done;
  if (!done && (header.kind != wire::Kind::result || (header.flags & wire::flag_finished) == 0)) {
    return;
  }
  for (std::uint32_t i = 0; i < (done ? std::min(header.chunk, 1u << 20) : 1); ++i) {
    close(which, header.lane, header.seq + i);
  }
}

void Oracle::rank_is_done(Rank rank, std::uint64_t op) {
  const auto what = [&] {
    return name(rank) + " is told that op " + std::to_string(op) + " is done";
  };
  const auto& calls = script_->calls(rank);
  if (refused(rank) || op != done_[rank.value] || op >= calls.size()) {
    return complain("I2: " + what() + ": out of turn");
  }
  ++done_[rank.value];
  for (std::uint8_t l = 0; l < script_->lanes(); ++l) {
    // The op's fragments in this lane lie behind those of the ops before it.
    const LaneState& of_lane = at_root(Lane(l));
    for (std::size_t at = of_lane.finished; at < of_lane.contributed.size(); ++at) {
      const Seq seq = script_->first_seq() + static_cast<std::uint32_t>(at);
      const auto place = script_->place(rank, Lane(l), seq);
      if (!place || place->op > op) break;
      if (!ever_finished(Lane(l), seq))
        return complain("I1: " + what() + " before all contributed to it");
    }
  }
}

void Oracle::rank_is_refused(Rank rank, const agent::Mismatched& told, std::size_t submitted) {
  if (refused(rank)) complain("I2: " + name(rank) + " is refused twice");
  refused_ |= 1ull << rank.value;
  bool differ = false;
  for (std::uint16_t r = 1; r < script_->ranks(); ++r) {
    differ |= script_->calls(Rank(r)) != script_->calls(Rank(0));
  }
  if (!differ) complain("P12: " + name(rank) + " is refused, but all ranks call the same");
  // Its own op at that place, or the next one to be done when it is not there yet.
  const std::uint64_t done = done_[rank.value];
  const bool right = std::any_of(refusals_.begin(), refusals_.end(), [&](const Where& where) {
    const auto place = script_->place(rank, where.lane, where.seq);
    const bool begun = place && place->op < submitted;
    return told.op == (begun ? std::max<std::uint64_t>(place->op, done) : done);
  });
  if (!right) {
    complain("P12: " + name(rank) + " is refused at op " + std::to_string(told.op) +
             ", which does not lie there");
  }
}

}  // namespace cais::sim
