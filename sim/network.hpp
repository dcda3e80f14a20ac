// sim/network.hpp — what becomes of a packet on its way: it comes late, twice, damaged, or not at
// all. Links are one-way; each has its own troubles. Knows nothing of the protocol.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/rng.hpp"
#include "base/time.hpp"
#include "sim/scenario.hpp"

namespace cais::sim {

enum class Fault : std::uint8_t {
  loss,
  burst,
  partition,
  clog,
  doubled,
  doubled_late,
  straggler,
  damage,
  truncation,
  rank_pause,
  switch_pause,
  overflow,  // of the inbox of a machine that pauses
  impostor,
  rank_crash,
  switch_crash,
  switch_cut_off,
  controller_crash,
  control_loss,
  control_doubled,
  count_,
};
const char* to_string(Fault fault);
using FaultCounts = std::array<std::uint64_t, static_cast<std::size_t>(Fault::count_)>;

/// A packet as it goes onto the wire, from the pieces that a machine sends.
std::vector<std::byte> joined(std::span<const std::byte> header, std::span<const std::byte> payload,
                              std::span<const std::byte> padding = {});

using Bytes = std::shared_ptr<const std::vector<std::byte>>;

/// A packet as it comes out of a link.
struct Copy {
  Instant arrives;
  Bytes bytes;
  bool damaged;
};

class Network {
 public:
  Network(const Scenario& scenario, std::size_t links);

  /// What arrives of a packet that enters `link` now; valid until the next call.
  const std::vector<Copy>& carry(Instant now, std::size_t link, std::vector<std::byte> packet);
  void clog(std::size_t link, Instant until);
  void cut(std::size_t link, Instant until);
  /// The safety phase is over: from now on there is nothing but delay. What is on its way, comes.
  void heal();

  FaultCounts& faults() { return faults_; }

 private:
  struct Link {
    Rng rng;
    Instant clogged_until{};
    Instant cut_until{};
    Instant burst_until{};
  };
  bool strikes(Link& link, std::uint64_t rate_per_million, Fault fault);
  bool lost(Instant now, Link& link);
  Duration delay(Link& link) const;

  Scenario scenario_;
  bool faulty_;
  std::vector<Link> links_;
  std::vector<Copy> copies_;
  FaultCounts faults_{};
};

}  // namespace cais::sim
