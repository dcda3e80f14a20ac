// sim/report.hpp — what a run was like: how long, how much, which faults, and which rare paths it
// took. Runs add up.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/time.hpp"
#include "sim/network.hpp"

namespace cais::sim {

/// Rare paths. One that no seed takes is not tested.
enum class Probe : std::uint8_t {
  one_rank,               // a group of one
  empty_op,               // nothing but dones
  seq_wrapped,            // a counter went past 2^32
  slot_reused,            // a fragment took a slot that an older one had
  several_lanes,          // an op on more than one lane
  repeat_answered,        // P7
  want_answered,          // P2, P10
  nak_sent,               // P11
  waiting_sent,           // P16
  done_for_many,          // a done that speaks for several fragments
  stale_at_switch,        // a copy came after its slot was taken anew
  stale_at_rank,          // a copy came after its fragment was settled
  timed_out,              // an agent's timer ran out
  mismatch_found,         // P12
  refused_again,          // P12: a rank that missed the refusal heard it again
  refused_by_management,  // P12: a rank heard of it from another one
  damage_at_switch,       // a packet with a wrong tag, or none
  damage_at_rank,
  foreign_session,      // a packet of a session that is closed
  foreign_epoch,        // a packet of an earlier life of the session
  taken_in_batches,     // a switch took several packets before it sent any
  kept_in_buffers,      // a contribution was kept where it came in
  resumed,              // P17: a session went on in another epoch
  resumed_again,        // before all that went out again was settled
  sum_contributed,      // P17: a rank contributed a sum of an earlier epoch
  done_op_asked_for,    // P4: and its op was done by then
  moved,                // a lane went to another switch
  stranded,             // no switch was left for a while
  fell_back,            // P18: a rank's own switch served the session
  denied,               // P16: a switch said that it has no such session
  order_refused,        // P15: by a machine that has heard of a newer lease
  order_overtaken,      // P20: by a later one of the same controller
  epoch_overtaken,      // P15: a machine was in a newer epoch than ordered
  forsaken,             // P15: a switch served an epoch that all others had left
  superseded,           // a controller heard of a newer one
  rank_died,            // P19: all ranks of a session heard of it
  tree_resumed,         // P9, P17: a switch above others began another epoch
  final_partial,        // P9, P17: a partial went up that is the result of an earlier epoch
  three_levels,         // P9: a partial went up from the second of three levels of switches
  asked_above,          // P7, P9: a question went on to the parent
  answered_from_above,  // P9: a parent's answer to one came
  nak_from_above,       // P11 between switches
  mismatch_told_above,  // P12: a mismatch found below the root
  stale_from_above,     // what a parent sent came when the slot was finished, or taken anew
  count_,
};
const char* to_string(Probe probe);

struct Report {
  std::uint64_t runs = 0;
  Duration simulated{0};
  std::uint64_t packets = 0;
  std::uint64_t ops = 0;      // that ended at a rank
  std::uint64_t checked = 0;  // packets before and after which a machine's whole state was compared
  FaultCounts faults{};
  std::array<std::uint64_t, static_cast<std::size_t>(Probe::count_)> probes{};
  Duration longest_stall{0};  // of a group in the liveness phase
  std::uint64_t stall_seed = 0;

  void reach(Probe probe, std::uint64_t times = 1) {
    probes[static_cast<std::size_t>(probe)] += times;
  }
  void add(const Report& other);
};
std::string to_string(const Report& report);

}  // namespace cais::sim
