// The ranks' outputs in a small world. All states share one memory, so before a rank takes a step
// its outputs are blanked; what it has written then is looked at, and remembered in the state.
#include <algorithm>

#include "base/check.hpp"
#include "sim/check/model.hpp"

namespace cais::sim {
namespace {

constexpr std::byte blank{0xee};

}  // namespace

void Model::find_parts() {
  parts_.resize(world_.ranks);
  for (std::uint16_t r = 0; r < world_.ranks; ++r) {
    const auto& calls = script_->calls(Rank(r));
    for (std::size_t op = 0; op < calls.size(); ++op) {
      const nir::Plan& plan = calls[op]->plan;
      for (std::uint32_t f = 0; f < plan.fragments(); ++f) {
        const nir::Extent extent = plan.extent(f);
        if (!plan.receives_payload(Rank(r), extent.unit)) continue;
        const std::uint16_t sources = plan.combine == nir::Combine::concat ? plan.ranks : 1;
        for (std::uint16_t source = 0; source < sources; ++source) {
          parts_[r].push_back({op, source * plan.unit_bytes + extent.offset, extent.bytes});
        }
      }
    }
    CAIS_CHECK(parts_[r].size() <= 64);  // one bit each
  }
}

void Model::blank_outputs(Rank rank) {
  for (const auto& job : jobs_) {
    std::fill(job->recv[rank.value].begin(), job->recv[rank.value].end(), blank);
  }
}

/// Before a rank takes a step: what it has is there again as long as the memory is its own, for in
/// another epoch it may contribute that (P17). Of an op that is done nothing may be read.
void Model::prepare_outputs(const State& state, Rank rank) {
  blank_outputs(rank);
  if (!world_.epochs) return;
  const auto& parts = parts_[rank.value];
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    if ((state.written[rank.value] >> i & 1) == 0 || part.op < state.oracle.done(rank)) continue;
    const Job& job = *script_->calls(rank)[part.op];
    const auto from = job.expected[rank.value].begin() + static_cast<std::ptrdiff_t>(part.offset);
    std::copy_n(from, part.bytes, jobs_[part.op]->recv[rank.value].data() + part.offset);
  }
}

/// I1, I6: what was written since blank_outputs() is the reference's, and belongs to no op that the
/// rank's caller has back already.
void Model::check_outputs(State& state, Rank rank) {
  const auto& parts = parts_[rank.value];
  const auto& calls = script_->calls(rank);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const Job& job = *calls[part.op];
    const std::byte* is = job.recv[rank.value].data() + part.offset;
    if (std::all_of(is, is + part.bytes, [](std::byte b) { return b == blank; })) continue;
    const std::byte* wanted = job.expected[rank.value].data() + part.offset;
    const std::string where = " of op " + std::to_string(part.op) + " at rank " +
                              std::to_string(rank.value) + ", from byte " +
                              std::to_string(part.offset) + " on";
    if (!std::equal(is, is + part.bytes, wanted)) {
      state.oracle.complain("I1: a wrong result in the output" + where);
    }
    if (part.op < state.oracle.done(rank)) {
      state.oracle.complain("I6: the output" + where + ", is written after it was done");
    }
    state.written[rank.value] |= std::uint64_t{1} << i;
  }
  blank_outputs(rank);
}

void Model::check_done(State& state, Rank rank, std::uint64_t op) {
  const auto& parts = parts_[rank.value];
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].op == op && (state.written[rank.value] >> i & 1) == 0) {
      state.oracle.complain("I1: op " + std::to_string(op) + " is done at rank " +
                            std::to_string(rank.value) + " without its output from byte " +
                            std::to_string(parts[i].offset) + " on");
    }
  }
}

}  // namespace cais::sim
