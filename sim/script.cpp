#include <algorithm>

#include "base/check.hpp"
#include "sim/oracle.hpp"

namespace cais::sim {

Script::Script(std::uint8_t lanes, std::uint32_t window_fragments, Seq first_seq,
               std::vector<std::vector<const Job*>> calls)
    : lanes_(lanes), window_(window_fragments), first_seq_(first_seq), calls_(std::move(calls)) {
  for (std::size_t rank = 0; rank < calls_.size(); ++rank) {
    std::size_t same = 0;
    while (same < rank && calls_[same] != calls_[rank]) ++same;
    tables_.push_back(same < rank ? tables_[same]
                                  : std::make_shared<const Table>(tabulate(calls_[rank])));
  }
}

Script::Table Script::tabulate(const std::vector<const Job*>& calls) const {
  CAIS_CHECK(lanes_ > 0);
  Table table(lanes_);
  for (std::uint32_t op = 0; op < calls.size(); ++op) {
    const nir::Plan& plan = calls[op]->plan;
    const std::size_t first = plan.lanes == lanes_ ? 0 : op % lanes_;
    for (std::uint8_t i = 0; i < plan.lanes; ++i) {
      const nir::FragmentRange range = plan.dealt_to(i);
      for (std::uint32_t f = range.begin; f != range.end; ++f) {
        table[(first + i) % lanes_].push_back({op, f});
      }
    }
  }
  return table;
}

std::optional<Script::Place> Script::place(Rank rank, Lane lane, Seq seq) const {
  const std::vector<Place>& of_lane = (*tables_[rank.value])[lane.value];
  const std::size_t at = index(seq);
  return at < of_lane.size() ? std::optional(of_lane[at]) : std::nullopt;
}

const Job* Script::agreed(Lane lane, Seq seq, Place& out) const {
  const Job* job = nullptr;
  for (std::uint16_t rank = 0; rank < ranks(); ++rank) {
    const auto here = place(Rank(rank), lane, seq);
    if (!here) return nullptr;
    const Job* of_rank = calls_[rank][here->op];
    if (job != nullptr && (of_rank != job || *here != out)) return nullptr;
    job = of_rank;
    out = *here;
  }
  return job;
}

std::size_t Script::length(Lane lane) const {
  std::size_t most = 0;
  for (const auto& table : tables_) most = std::max(most, (*table)[lane.value].size());
  return most;
}

}  // namespace cais::sim
