// sim/scenario.hpp — one run of the simulator, in numbers: the groups, what they call, and what the
// network does to them. A seed gives them all; each can be set by name, so that a run that fails
// can be made smaller.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>

#include "base/result.hpp"
#include "base/rng.hpp"

namespace cais::sim {

inline constexpr std::uint64_t switches_max = 8;
inline constexpr std::uint64_t leaves_max = 8;

struct Scenario {
  std::uint64_t seed = 1;

  // The groups. Each session draws its own from these bounds.
  std::uint64_t sessions = 1;
  std::uint64_t lives = 1;  // how often each session is opened, each time in the next epoch
  std::uint64_t ranks = 2;
  std::uint64_t lanes = 1;
  std::uint64_t switches = 1;  // switch i serves the lanes l with l mod switches = i
  std::uint64_t levels = 1;  // more: in place of each switch there is a tree of so many levels (P9)
  std::uint64_t leaves = 1;  // of such a tree, whose ranks they share by chance
  std::uint64_t window = 16;     // fragments
  std::uint64_t payload = 64;    // bytes
  std::uint64_t ops = 4;         // that each rank calls
  std::uint64_t elements = 500;  // of a unit, at most
  std::uint64_t depth = 2;       // ops under way at a rank
  std::uint64_t think_us = 500;  // between two calls of a rank, at most
  std::uint64_t wrap = 0;        // seqs before the counter wraps; 0: it begins at 0
  std::uint64_t mismatch = 0;    // 1: in the first session a rank calls another collective

  // The network, all the time.
  std::uint64_t delay_us = 10;
  std::uint64_t jitter_us = 0;  // packets overtake each other within this

  // The faults, while the safety phase lasts. Rates are per million packets.
  std::uint64_t safety_ms = 0;
  std::uint64_t loss = 0;
  std::uint64_t burst = 0;         // begins a loss of some milliseconds on one link
  std::uint64_t doubled = 0;       // comes twice at once
  std::uint64_t doubled_late = 0;  // comes again much later
  std::uint64_t straggler = 0;     // comes far behind the window
  std::uint64_t damage = 0;        // one bit is flipped
  std::uint64_t truncation = 0;
  std::uint64_t impostor = 0;  // another process sends the same, in the rank's name
  // How many, at random times of the safety phase.
  std::uint64_t clogs = 0;       // a link holds its packets back for a while
  std::uint64_t partitions = 0;  // a link loses everything one way for a while
  std::uint64_t rank_pauses = 0;
  std::uint64_t switch_pauses = 0;

  // With a controller, sessions go on in another epoch when a switch is lost.
  std::uint64_t controlled = 0;          // 1: they have one, and agents keep what that asks for
  std::uint64_t fallback = 0;            // 1: to a switch in a rank's process
  std::uint64_t control_loss = 0;        // of orders and answers
  std::uint64_t control_doubled = 0;     // of these come again later
  std::uint64_t switch_crashes = 0;      // how many; it comes back with nothing
  std::uint64_t switch_cut_offs = 0;     // from its controller
  std::uint64_t controller_crashes = 0;  // how many; another one takes over, with a newer lease
  std::uint64_t rank_crashes = 0;        // how many; they do not come back
};

struct Knob {
  const char* name;
  std::uint64_t Scenario::*value;
  std::uint64_t least;  // the simplest value that it can have
  std::uint64_t most;
};
/// All but the seed, the ones that make a run smallest first.
std::span<const Knob> knobs();

/// Who draws random numbers: each has its own, so that a run with less in it leaves the rest as it
/// was.
enum class Purpose : std::uint64_t {
  scenario,
  group,
  rank,
  machine,
  link,
  fault,
  sample,
  control,
  impostor,
  tree
};
Rng numbers(std::uint64_t seed, Purpose purpose, std::uint64_t index = 0);

Scenario scenario_of(std::uint64_t seed);
/// "loss=0" and the like. The error names the knob and what it may be.
Result<void> set(Scenario& scenario, const std::string& assignment);
/// name=value of all that is not at its least.
std::string to_string(const Scenario& scenario);

}  // namespace cais::sim
