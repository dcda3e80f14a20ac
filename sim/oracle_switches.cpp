// What the oracle holds against each packet that a switch puts on the wire: to ranks, to the
// switches below it, to its parent (P9).
#include <algorithm>

#include "sim/oracle.hpp"

namespace cais::sim {
namespace {

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

std::string name(Rank rank) { return "rank " + std::to_string(rank.value); }

}  // namespace

bool is_fragment(std::span<const std::byte> payload, const nir::TensorBytes& bytes,
                 std::uint64_t offset, const nir::Plan& plan, std::uint32_t real) {
  if (payload.size() != plan.fragment_bytes || offset + real > bytes.size()) return false;
  const std::span<const std::byte> wanted(bytes.data() + offset, real);
  return std::equal(wanted.begin(), wanted.end(), payload.begin()) &&
         is_zero(payload.subspan(real));
}

void Oracle::switch_sends(std::size_t which, Rank to, const wire::Header& header,
                          std::span<const std::byte> payload) {
  check_down(which, {1ull << to.value, name(to)}, header, payload);
}

void Oracle::switch_sends_down(std::size_t which, std::size_t to, const wire::Header& header,
                               std::span<const std::byte> payload) {
  if (tree_->node(to).parent != which) complain("P9: a switch sends to one that is not below it");
  check_down(which, {tree_->node(to).members, "switch " + std::to_string(to)}, header, payload);
}

void Oracle::check_down(std::size_t which, const Receiver& to, const wire::Header& header,
                        std::span<const std::byte> payload) {
  const auto what = [&] { return "a switch sends " + to.name + " " + wire::to_string(header); };
  if (header.level != 0) complain("P9: " + what() + ": what comes down has no level");
  switch (header.kind) {
    case wire::Kind::result:
      return check_result(which, to, header, payload);
    case wire::Kind::done:
      return check_done(to, header);
    case wire::Kind::nak:
      if (header.chunk == 0 || header.chunk > script_->window()) {
        complain("P11: " + what() + ": not a run within a window");
      }
      return;
    case wire::Kind::waiting:
      return check_waiting(which, to, header);
    case wire::Kind::mismatch:
      return check_mismatch(header, payload);
    case wire::Kind::contribution:
    case wire::Kind::want:
    case wire::Kind::no_session:
      break;
  }
  complain(what() + ": switches do not send this down");
}

/// P16: who is below the switch and lacking is named; of others it knows what it was told.
void Oracle::check_waiting(std::size_t which, const Receiver& to, const wire::Header& header) {
  std::uint64_t lacking = 0;
  for (std::uint16_t r = 0; r < script_->ranks(); ++r) {
    const Rank rank(r);
    if (!contributed(tree_->leaf_of(rank), rank, header.lane, header.seq)) lacking |= 1ull << r;
  }
  const std::uint64_t named = wire::named_ranks(header);
  if (named == 0 || (lacking & tree_->node(which).members & ~named) != 0 ||
      (named & ~everyone_) != 0) {
    complain("P16: a switch sends " + to.name + " " + wire::to_string(header) +
             ": not the ranks that are lacking");
  }
  if ((to.ranks >> header.rank.value & 1) == 0) {
    complain("P16: a switch sends " + to.name + " " + wire::to_string(header) +
             ": that rank's question came another way");
  }
}

void Oracle::switch_sends_up(std::size_t which, const wire::Header& header,
                             std::span<const std::byte> payload) {
  const auto what = [&] {
    return "switch " + std::to_string(which) + " sends up " + wire::to_string(header);
  };
  const Tree::Node& node = tree_->node(which);
  if (header.level != node.level || (node.members >> header.rank.value & 1) == 0) {
    return complain("P9: " + what() + ": not its level, or a rank that is not below it");
  }
  if (header.kind == wire::Kind::mismatch) return check_mismatch(header, payload);
  const auto place = script_->place(header.rank, header.lane, header.seq);
  if (!place) return complain(what() + ": that rank calls nothing that lies there");
  // P6: it is to its parent what a rank is to a switch.
  if (script_->index(header.seq) >= at_root(header.lane).finished + script_->window()) {
    complain("P1: " + what() + ": the fragment a window before is not settled");
  }
  if (header.kind == wire::Kind::want) return;
  if (header.kind != wire::Kind::contribution) {
    return complain(what() + ": switches do not send this up");
  }
  const Job& job = *script_->calls(header.rank)[place->op];
  const nir::Extent extent = job.plan.extent(place->fragment);
  if (header.descriptor != job.submits[header.rank.value].descriptor ||
      header.chunk != job.plan.chunk_of(place->fragment) ||
      header.offset != extent.offset / wire::offset_step) {
    complain("P9: " + what() + ": not the fragment that lies there");
  }
  if (job.plan.combine == nir::Combine::reduce) {
    return check_partial(which, job, *place, header, payload);
  }
  check_passed_up(which, job, *place, header, payload);
}

/// Whether a partial's bits are right shows in the sum. P17: in its place goes the result, where a
/// rank below has it.
void Oracle::check_partial(std::size_t which, const Job& job, const Script::Place& place,
                           const wire::Header& header, std::span<const std::byte> payload) {
  const std::uint64_t members = tree_->node(which).members;
  const nir::Plan& plan = job.plan;
  bool right =
      payload.size() == plan.fragment_bytes / size_of(plan.dtype) * size_of(plan.accumulator);
  if ((header.flags & wire::flag_final) != 0) {
    const nir::Extent extent = plan.extent(place.fragment);
    const auto has_it = [&](Rank rank) {
      return plan.receives_payload(rank, extent.unit) &&
             is_fragment(payload, job.expected[rank.value], extent.offset, plan, extent.bytes);
    };
    right = false;
    for (std::uint16_t r = 0; r < script_->ranks(); ++r) {
      right |= (members >> r & 1) != 0 && has_it(Rank(r));
    }
    right = right && ever_finished(header.lane, header.seq);
  }
  if ((members & ~taken(which, header.lane, header.seq)) != 0 || header.rank != least(members) ||
      !right) {
    complain("P9: switch " + std::to_string(which) + " sends up " + wire::to_string(header) +
             ": not the partial of all below it");
  }
}

void Oracle::check_passed_up(std::size_t which, const Job& job, const Script::Place& place,
                             const wire::Header& header, std::span<const std::byte> payload) {
  const nir::Plan& plan = job.plan;
  const nir::Extent extent = plan.extent(place.fragment);
  bool wanted = false;
  for (std::uint16_t r = 0; r < script_->ranks(); ++r) {
    const bool below = (tree_->node(which).members >> r & 1) != 0;
    wanted |= !below && plan.receives_payload(Rank(r), extent.unit);
  }
  const bool loads = wanted && plan.contributes_payload(header.rank);
  const bool right =
      loads ? is_fragment(payload, job.inputs[header.rank.value],
                          extent.unit * plan.unit_bytes + extent.offset, plan, extent.bytes)
            : payload.empty();
  if (!right || !contributed(which, header.rank, header.lane, header.seq)) {
    complain("P9: switch " + std::to_string(which) + " sends up " + wire::to_string(header) +
             ": not what that rank has contributed");
  }
}

void Oracle::check_result(std::size_t which, const Receiver& to, const wire::Header& header,
                          std::span<const std::byte> payload) {
  const auto what = [&] { return "a switch sends " + to.name + " " + wire::to_string(header); };
  Script::Place place{};
  const Job* job = script_->agreed(header.lane, header.seq, place);
  // Where ranks differ there is no right result; P12 finds most of that, and what it cannot see
  // (the same op at another place of the sequence) has no answer.
  if (job == nullptr) return;
  const nir::Plan& plan = job->plan;
  const nir::Extent extent = plan.extent(place.fragment);
  const bool sum = plan.combine == nir::Combine::reduce;
  std::optional<Rank> owed;  // one of those that it is for
  for (std::uint16_t r = 0; r < script_->ranks(); ++r) {
    if ((to.ranks >> r & 1) != 0 && plan.receives_payload(Rank(r), extent.unit)) owed = Rank(r);
  }
  if (!owed || (!sum && (to.ranks >> header.rank.value & 1) != 0)) {
    return complain("I3: " + what() + ": nothing is owed there");
  }
  if (header.descriptor != job->submits[owed->value].descriptor ||
      header.chunk != plan.chunk_of(place.fragment) ||
      header.offset != extent.offset / wire::offset_step) {
    complain("I1: " + what() + ": not the fragment that lies there");
  }
  const bool says_finished = (header.flags & wire::flag_finished) != 0;
  if (says_finished && !finished(header.lane, header.seq)) {
    complain("P8: " + what() + ": not all ranks have contributed");
  }
  if (sum && !says_finished) complain("P8: " + what() + ": a sum that is not finished");
  if ((taken(which, header.lane, header.seq) & to.ranks) == 0) {
    complain("P10: " + what() + ": who has not contributed has no place for it");
  }
  if (sum) {
    if (!is_fragment(payload, job->expected[owed->value], extent.offset, plan, extent.bytes)) {
      complain("I1: " + what() + ": not the sum of one contribution per rank");
    }
    return;
  }
  if (!contributed(tree_->leaf_of(header.rank), header.rank, header.lane, header.seq)) {
    complain("P10: " + what() + ": that rank has contributed nothing");
  }
  if (!is_fragment(payload, job->inputs[header.rank.value],
                   extent.unit * plan.unit_bytes + extent.offset, plan, extent.bytes)) {
    complain("I1: " + what() + ": not the payload of that rank");
  }
}

void Oracle::check_done(const Receiver& to, const wire::Header& header) {
  const auto what = [&] { return "a switch sends " + to.name + " " + wire::to_string(header); };
  if (header.chunk == 0) complain(what() + ": done with nothing");
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(header.chunk, 1u << 20); ++i) {
    if (!finished(header.lane, header.seq + i)) {
      return complain("P8: " + what() + ": not all ranks have contributed to seq " +
                      std::to_string((header.seq + i).value));
    }
  }
}

void Oracle::check_mismatch(const wire::Header& header, std::span<const std::byte> payload) {
  wire::Mismatch told;
  if (!wire::parse(payload, told)) {
    return complain("P12: a switch refuses with " + wire::to_string(header) + ": not readable");
  }
  const auto calls_it = [&](Rank rank, DescriptorHash hash) {
    if (rank.value >= script_->ranks()) return false;
    const auto place = script_->place(rank, header.lane, header.seq);
    return place && script_->calls(rank)[place->op]->submits[rank.value].descriptor == hash;
  };
  if (told.first_descriptor == told.second_descriptor || told.first == told.second ||
      !calls_it(told.first, told.first_descriptor) ||
      !calls_it(told.second, told.second_descriptor)) {
    complain("P12: a switch refuses with " + wire::to_string(header) + ": " + name(told.first) +
             " and " + name(told.second) + " did not call these there");
  }
  const Where where{header.lane, header.seq};
  if (std::find(refusals_.begin(), refusals_.end(), where) == refusals_.end()) {
    refusals_.push_back(where);
  }
}

}  // namespace cais::sim
