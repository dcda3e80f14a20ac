#include "sim/report.hpp"

#include <cstdio>

namespace cais::sim {

const char* to_string(Probe probe) {
  static constexpr const char* names[] = {"one_rank",
                                          "empty_op",
                                          "seq_wrapped",
                                          "slot_reused",
                                          "several_lanes",
                                          "repeat_answered",
                                          "want_answered",
                                          "nak_sent",
                                          "waiting_sent",
                                          "done_for_many",
                                          "stale_at_switch",
                                          "stale_at_rank",
                                          "timed_out",
                                          "mismatch_found",
                                          "refused_again",
                                          "refused_by_management",
                                          "damage_at_switch",
                                          "damage_at_rank",
                                          "foreign_session",
                                          "foreign_epoch",
                                          "taken_in_batches",
                                          "kept_in_buffers",
                                          "resumed",
                                          "resumed_again",
                                          "sum_contributed",
                                          "done_op_asked_for",
                                          "moved",
                                          "stranded",
                                          "fell_back",
                                          "denied",
                                          "order_refused",
                                          "order_overtaken",
                                          "epoch_overtaken",
                                          "forsaken",
                                          "superseded",
                                          "rank_died",
                                          "tree_resumed",
                                          "final_partial",
                                          "three_levels",
                                          "asked_above",
                                          "answered_from_above",
                                          "nak_from_above",
                                          "mismatch_told_above",
                                          "stale_from_above"};
  static_assert(std::size(names) == static_cast<std::size_t>(Probe::count_));
  return names[static_cast<std::size_t>(probe)];
}

void Report::add(const Report& other) {
  runs += other.runs;
  simulated += other.simulated;
  packets += other.packets;
  ops += other.ops;
  checked += other.checked;
  for (std::size_t i = 0; i < faults.size(); ++i) faults[i] += other.faults[i];
  for (std::size_t i = 0; i < probes.size(); ++i) probes[i] += other.probes[i];
  if (other.longest_stall > longest_stall) {
    longest_stall = other.longest_stall;
    stall_seed = other.stall_seed;
  }
}

std::string to_string(const Report& report) {
  const auto seconds = [](Duration d) { return std::chrono::duration<double>(d).count(); };
  char line[256];
  std::snprintf(
      line, sizeof line,
      "simulated time  %.2f h\npackets         %llu\nops             %llu\nstates compared "
      "%llu\nlongest stall   %.2f s without faults (seed %llu)\nfaults         ",
      seconds(report.simulated) / 3600, static_cast<unsigned long long>(report.packets),
      static_cast<unsigned long long>(report.ops), static_cast<unsigned long long>(report.checked),
      seconds(report.longest_stall), static_cast<unsigned long long>(report.stall_seed));
  std::string text = line;
  const auto list = [&](const char* name, std::uint64_t count) {
    text += std::string(" ") + name + "=" + std::to_string(count);
  };
  for (std::size_t i = 0; i < report.faults.size(); ++i) {
    list(to_string(static_cast<Fault>(i)), report.faults[i]);
  }
  text += "\nprobes         ";
  for (std::size_t i = 0; i < report.probes.size(); ++i) {
    list(to_string(static_cast<Probe>(i)), report.probes[i]);
  }
  return text + "\n";
}

}  // namespace cais::sim
