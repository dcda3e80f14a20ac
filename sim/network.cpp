#include "sim/network.hpp"

#include <algorithm>

namespace cais::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t burst_us_max = 5'000;
constexpr std::uint64_t straggles_us_max = 20'000;
constexpr std::uint64_t much_later_ms_max = 400;

}  // namespace

const char* to_string(Fault fault) {
  static constexpr const char* names[] = {"loss",       "burst",        "partition",    "clog",
                                          "doubled",    "doubled_late", "straggler",    "damage",
                                          "truncation", "rank_pause",   "switch_pause", "overflow"};
  static_assert(std::size(names) == static_cast<std::size_t>(Fault::count_));
  return names[static_cast<std::size_t>(fault)];
}

Network::Network(const Scenario& scenario, std::size_t links, std::uint64_t seed)
    : scenario_(scenario), rng_(seed), faulty_(scenario.safety_ms > 0), links_(links) {}

bool Network::strikes(std::uint64_t rate_per_million, Fault fault) {
  if (!faulty_ || rate_per_million == 0 || rng_.below(1'000'000) >= rate_per_million) return false;
  ++faults_[static_cast<std::size_t>(fault)];
  return true;
}

Duration Network::delay() {
  return microseconds(scenario_.delay_us + rng_.below(scenario_.jitter_us + 1));
}

bool Network::lost(Instant now, Link& link) {
  if (now < link.cut_until) {
    ++faults_[static_cast<std::size_t>(Fault::partition)];
    return true;
  }
  if (now < link.burst_until) return true;
  if (strikes(scenario_.burst, Fault::burst)) {
    link.burst_until = now + microseconds(rng_.below(burst_us_max));
    return true;
  }
  return strikes(scenario_.loss, Fault::loss);
}

void Network::damage(std::vector<std::byte>& packet) {
  const std::uint64_t bit = rng_.below(8 * packet.size());
  packet[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
}

const std::vector<Copy>& Network::carry(Instant now, std::size_t which,
                                        std::vector<std::byte> packet) {
  copies_.clear();
  Link& link = links_[which];
  if (lost(now, link)) return copies_;
  bool damaged = false;
  if (strikes(scenario_.damage, Fault::damage)) {
    damage(packet);
    damaged = true;
  }
  if (strikes(scenario_.truncation, Fault::truncation)) {
    packet.resize(rng_.below(packet.size()));
    damaged = true;
  }
  const auto bytes = std::make_shared<const std::vector<std::byte>>(std::move(packet));
  Instant leaves = now;
  if (now < link.clogged_until) {
    leaves = link.clogged_until;
    ++faults_[static_cast<std::size_t>(Fault::clog)];
  }
  copies_.push_back({leaves + delay(), bytes, damaged});
  if (strikes(scenario_.straggler, Fault::straggler)) {
    copies_[0].arrives += microseconds(rng_.below(straggles_us_max));
  }
  if (strikes(scenario_.doubled, Fault::doubled)) {
    copies_.push_back({leaves + delay(), bytes, damaged});
  }
  if (strikes(scenario_.doubled_late, Fault::doubled_late)) {
    const Duration later = milliseconds(rng_.below(much_later_ms_max));
    copies_.push_back({leaves + delay() + later, bytes, damaged});
  }
  return copies_;
}

void Network::clog(std::size_t link, Instant until) { links_[link].clogged_until = until; }
void Network::cut(std::size_t link, Instant until) { links_[link].cut_until = until; }

void Network::heal() {
  faulty_ = false;
  std::fill(links_.begin(), links_.end(), Link{});
}

}  // namespace cais::sim
