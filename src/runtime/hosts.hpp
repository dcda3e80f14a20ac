// runtime/hosts.hpp — which ranks share a host, and who speaks for them between hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cais::runtime {

/// The ranks of a group by host. Hosts are in the order of their lowest rank, the members of each
/// ascend, and its first member leads it. The same at all ranks.
struct Hosts {
  std::vector<std::vector<std::uint16_t>> members;

  std::size_t count() const { return members.size(); }
  std::size_t ranks() const;
  std::size_t members_max() const;  // of any host
};

/// Where one rank is in Hosts.
struct Seat {
  std::uint16_t host;
  std::uint16_t index;  // among the members of the host; 0 leads
};

/// `host_of_rank[r]` is equal for two ranks just when they are on one host.
Hosts group_by_host(std::span<const std::string> host_of_rank);
Seat seat_of(const Hosts& hosts, std::uint16_t rank);

}  // namespace cais::runtime
