#include "sim/oracle.hpp"

#include <algorithm>
#include <bit>

namespace cais::sim {
namespace {

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

/// Whether `payload` is `bytes` from `offset` on, padded with zeros (I3).
bool is_fragment(std::span<const std::byte> payload, const nir::TensorBytes& bytes,
                 std::uint64_t offset, const nir::Plan& plan, std::uint32_t real) {
  if (payload.size() != plan.fragment_bytes || offset + real > bytes.size()) return false;
  const std::span<const std::byte> wanted(bytes.data() + offset, real);
  return std::equal(wanted.begin(), wanted.end(), payload.begin()) &&
         is_zero(payload.subspan(real));
}

std::string name(Rank rank) { return "rank " + std::to_string(rank.value); }

}  // namespace

Oracle::Oracle(const Script& script)
    : script_(&script),
      everyone_(script.ranks() == 64 ? ~0ull : (1ull << script.ranks()) - 1),
      lanes_(script.lanes()),
      done_(script.ranks()) {
  for (std::uint8_t l = 0; l < script.lanes(); ++l) {
    lanes_[l].contributed.resize(script.length(Lane(l)));
    lanes_[l].ever_finished.resize(script.length(Lane(l)));
  }
}

void Oracle::complain(std::string what) {
  if (complaint_.empty()) complaint_ = std::move(what);
}

bool Oracle::contributed(Rank rank, Lane lane, Seq seq) const {
  const auto& of_lane = lanes_[lane.value].contributed;
  const std::size_t at = script_->index(seq);
  return at < of_lane.size() && (of_lane[at] >> rank.value & 1) != 0;
}

bool Oracle::finished(Lane lane, Seq seq) const {
  const auto& of_lane = lanes_[lane.value].contributed;
  const std::size_t at = script_->index(seq);
  return at < of_lane.size() && of_lane[at] == everyone_;
}

bool Oracle::ever_finished(Lane lane, Seq seq) const {
  const auto& of_lane = lanes_[lane.value].ever_finished;
  const std::size_t at = script_->index(seq);
  return at < of_lane.size() && of_lane[at];
}

bool Oracle::begins(Lane lane, Seq from) {
  LaneState& of_lane = lanes_[lane.value];
  const std::size_t at = script_->index(from);
  const auto all_before = of_lane.ever_finished.begin() + static_cast<std::ptrdiff_t>(at);
  if (at > of_lane.contributed.size() ||
      std::find(of_lane.ever_finished.begin(), all_before, false) != all_before) {
    complain("P17: an epoch begins at seq " + std::to_string(from.value) +
             ", and some fragment before that was never finished");
    return false;
  }
  const bool early =
      of_lane.finished < of_lane.ever_finished.size() && of_lane.ever_finished[of_lane.finished];
  std::fill(of_lane.contributed.begin() + static_cast<std::ptrdiff_t>(at),
            of_lane.contributed.end(), 0);
  of_lane.begin = of_lane.finished = at;
  of_lane.open = 0;
  return early;
}

std::size_t Oracle::open_slots(std::uint64_t lanes_served) const {
  std::size_t open = 0;
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    if ((lanes_served >> l & 1) != 0) open += lanes_[l].open;
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
  if (at < lanes_[header.lane.value].begin) {
    complain("P17: " + what() + ": that lies before the epoch");
  }
  if (at >= lanes_[header.lane.value].finished + script_->window()) {
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

void Oracle::switch_takes(Rank rank, Lane lane, Seq seq) {
  LaneState& of_lane = lanes_[lane.value];
  const std::size_t at = script_->index(seq);
  if (at >= of_lane.contributed.size()) {
    return complain("the switch takes seq " + std::to_string(seq.value) + " of " + name(rank) +
                    ", which nobody calls");
  }
  std::uint64_t& who = of_lane.contributed[at];
  if (who == 0) ++of_lane.open;
  who |= 1ull << rank.value;
  if (who == everyone_) {
    --of_lane.open;
    of_lane.ever_finished[at] = true;
  }
  while (of_lane.finished < of_lane.contributed.size() &&
         of_lane.contributed[of_lane.finished] == everyone_) {
    ++of_lane.finished;
  }
}

void Oracle::switch_sends(Rank to, const wire::Header& header, std::span<const std::byte> payload) {
  const auto what = [&] { return "the switch sends " + name(to) + " " + wire::to_string(header); };
  switch (header.kind) {
    case wire::Kind::result:
      return check_result(to, header, payload);
    case wire::Kind::done:
      return check_done(to, header);
    case wire::Kind::nak:
      if (header.chunk == 0 || header.chunk > script_->window()) {
        complain("P11: " + what() + ": not a run within a window");
      }
      return;
    case wire::Kind::waiting: {
      const std::size_t at = script_->index(header.seq);
      const auto& of_lane = lanes_[header.lane.value].contributed;
      const std::uint64_t lacking = at < of_lane.size() ? everyone_ & ~of_lane[at] : 0;
      const std::uint64_t named = wire::named_ranks(header);
      if (named == 0 || (lacking & ~named) != 0 || (named & ~everyone_) != 0) {
        complain("P16: " + what() + ": not the ranks that are lacking");
      }
      return;
    }
    case wire::Kind::mismatch: {
      wire::Mismatch told;
      if (!wire::parse(payload, told)) return complain("P12: " + what() + ": not readable");
      return check_mismatch(told, header);
    }
    case wire::Kind::contribution:
    case wire::Kind::want:
    case wire::Kind::no_session:
      break;
  }
  complain(what() + ": switches do not send this");
}

void Oracle::check_result(Rank to, const wire::Header& header, std::span<const std::byte> payload) {
  const auto what = [&] { return "the switch sends " + name(to) + " " + wire::to_string(header); };
  Script::Place place{};
  const Job* job = script_->agreed(header.lane, header.seq, place);
  // Where ranks differ there is no right result; P12 finds most of that, and what it cannot see
  // (the same op at another place of the sequence) has no answer.
  if (job == nullptr) return;
  const nir::Plan& plan = job->plan;
  const nir::Extent extent = plan.extent(place.fragment);
  const bool sum = plan.combine == nir::Combine::reduce;
  if (!plan.receives_payload(to, extent.unit) || (!sum && header.rank == to)) {
    complain("I3: " + what() + ": nothing is owed there");
  }
  if (header.descriptor != job->submits[to.value].descriptor ||
      header.chunk != plan.chunk_of(place.fragment) ||
      header.offset != extent.offset / wire::offset_step) {
    complain("I1: " + what() + ": not the fragment that lies there");
  }
  const bool says_finished = (header.flags & wire::flag_finished) != 0;
  if (says_finished && !finished(header.lane, header.seq)) {
    complain("P8: " + what() + ": not all ranks have contributed");
  }
  if (sum && !says_finished) complain("P8: " + what() + ": a sum that is not finished");
  if (!contributed(to, header.lane, header.seq)) {
    complain("P10: " + what() + ": a rank that has not contributed has no place for it");
  }
  if (sum) {
    if (!is_fragment(payload, job->expected[to.value], extent.offset, plan, extent.bytes)) {
      complain("I1: " + what() + ": not the sum of one contribution per rank");
    }
    return;
  }
  if (!contributed(header.rank, header.lane, header.seq)) {
    complain("P10: " + what() + ": that rank has contributed nothing");
  }
  if (!is_fragment(payload, job->inputs[header.rank.value],
                   extent.unit * plan.unit_bytes + extent.offset, plan, extent.bytes)) {
    complain("I1: " + what() + ": not the payload of that rank");
  }
}

void Oracle::check_done(Rank to, const wire::Header& header) {
  const auto what = [&] { return "the switch sends " + name(to) + " " + wire::to_string(header); };
  if (header.chunk == 0) complain(what() + ": done with nothing");
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(header.chunk, 1u << 20); ++i) {
    if (!finished(header.lane, header.seq + i)) {
      return complain("P8: " + what() + ": not all ranks have contributed to seq " +
                      std::to_string((header.seq + i).value));
    }
  }
}

void Oracle::check_mismatch(const wire::Mismatch& told, const wire::Header& header) {
  const auto calls_it = [&](Rank rank, DescriptorHash hash) {
    if (rank.value >= script_->ranks()) return false;
    const auto place = script_->place(rank, header.lane, header.seq);
    return place && script_->calls(rank)[place->op]->submits[rank.value].descriptor == hash;
  };
  if (told.first_descriptor == told.second_descriptor || told.first == told.second ||
      !calls_it(told.first, told.first_descriptor) ||
      !calls_it(told.second, told.second_descriptor)) {
    complain("P12: the switch refuses with " + wire::to_string(header) + ": " + name(told.first) +
             " and " + name(told.second) + " did not call these there");
  }
  const Where where{header.lane, header.seq};
  if (std::find(refusals_.begin(), refusals_.end(), where) == refusals_.end()) {
    refusals_.push_back(where);
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
    for (std::size_t at = lanes_[l].finished; at < lanes_[l].contributed.size(); ++at) {
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
