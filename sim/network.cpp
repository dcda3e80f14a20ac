#include "sim/network.hpp"

namespace cais::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t burst_us_max = 5'000;
constexpr std::uint64_t straggles_us_max = 20'000;
constexpr std::uint64_t much_later_ms_max = 400;

}  // namespace

std::vector<std::byte> joined(std::span<const std::byte> header, std::span<const std::byte> payload,
                              std::span<const std::byte> padding) {
  std::vector<std::byte> packet(header.begin(), header.end());
  packet.insert(packet.end(), payload.begin(), payload.end());
  packet.insert(packet.end(), padding.begin(), padding.end());
  return packet;
}

const char* to_string(Fault fault) {
  static constexpr const char* names[] = {"loss",
                                          "burst",
                                          "partition",
                                          "clog",
                                          "doubled",
                                          "doubled_late",
                                          "straggler",
                                          "damage",
                                          "truncation",
                                          "rank_pause",
                                          "switch_pause",
                                          "overflow",
                                          "impostor",
                                          "rank_crash",
                                          "switch_crash",
                                          "switch_cut_off",
                                          "controller_crash",
                                          "control_loss",
                                          "control_doubled"};
  static_assert(std::size(names) == static_cast<std::size_t>(Fault::count_));
  return names[static_cast<std::size_t>(fault)];
}

Network::Network(const Scenario& scenario, std::size_t links)
    : scenario_(scenario), faulty_(scenario.safety_ms > 0) {
  for (std::size_t i = 0; i < links; ++i) {
    links_.push_back({numbers(scenario.seed, Purpose::link, i), {}, {}, {}});
  }
}

bool Network::strikes(Link& link, std::uint64_t rate_per_million, Fault fault) {
  // A number is drawn in any case: what one fault does is not changed by another one's rate.
  const bool here = link.rng.below(1'000'000) < rate_per_million;
  if (!faulty_ || !here) return false;
  ++faults_[static_cast<std::size_t>(fault)];
  return true;
}

Duration Network::delay(Link& link) const {
  return microseconds(scenario_.delay_us + link.rng.below(scenario_.jitter_us + 1));
}

bool Network::lost(Instant now, Link& link) {
  if (now < link.cut_until) {
    ++faults_[static_cast<std::size_t>(Fault::partition)];
    return true;
  }
  if (now < link.burst_until) return true;
  if (strikes(link, scenario_.burst, Fault::burst)) {
    link.burst_until = now + microseconds(link.rng.below(burst_us_max));
    return true;
  }
  return strikes(link, scenario_.loss, Fault::loss);
}

const std::vector<Copy>& Network::carry(Instant now, std::size_t which,
                                        std::vector<std::byte> packet) {
  copies_.clear();
  Link& link = links_[which];
  if (lost(now, link)) return copies_;
  bool damaged = false;
  if (strikes(link, scenario_.damage, Fault::damage)) {
    const std::uint64_t bit = link.rng.below(8 * packet.size());
    packet[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    damaged = true;
  }
  if (strikes(link, scenario_.truncation, Fault::truncation)) {
    packet.resize(link.rng.below(packet.size()));
    damaged = true;
  }
  const auto bytes = std::make_shared<const std::vector<std::byte>>(std::move(packet));
  Instant leaves = now;
  if (now < link.clogged_until) {
    leaves = link.clogged_until;
    ++faults_[static_cast<std::size_t>(Fault::clog)];
  }
  copies_.push_back({leaves + delay(link), bytes, damaged});
  if (strikes(link, scenario_.straggler, Fault::straggler)) {
    copies_[0].arrives += microseconds(link.rng.below(straggles_us_max));
  }
  if (strikes(link, scenario_.doubled, Fault::doubled)) {
    copies_.push_back({leaves + delay(link), bytes, damaged});
  }
  if (strikes(link, scenario_.doubled_late, Fault::doubled_late)) {
    const Duration later = milliseconds(link.rng.below(much_later_ms_max));
    copies_.push_back({leaves + delay(link) + later, bytes, damaged});
  }
  return copies_;
}

void Network::clog(std::size_t link, Instant until) { links_[link].clogged_until = until; }
void Network::cut(std::size_t link, Instant until) { links_[link].cut_until = until; }

void Network::heal() {
  faulty_ = false;
  for (Link& link : links_) link.clogged_until = link.cut_until = link.burst_until = Instant();
}

}  // namespace cais::sim
