#include "runtime/hosts.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace cais::runtime {

std::size_t Hosts::ranks() const {
  std::size_t sum = 0;
  for (const auto& ranks : members) sum += ranks.size();
  return sum;
}

std::size_t Hosts::members_max() const {
  std::size_t most = 0;
  for (const auto& ranks : members) most = std::max(most, ranks.size());
  return most;
}

Hosts group_by_host(std::span<const std::string> host_of_rank) {
  Hosts hosts;
  std::vector<std::string> keys;
  for (std::size_t rank = 0; rank < host_of_rank.size(); ++rank) {
    const auto known = std::find(keys.begin(), keys.end(), host_of_rank[rank]);
    const auto host = static_cast<std::size_t>(known - keys.begin());
    if (known == keys.end()) {
      keys.push_back(host_of_rank[rank]);
      hosts.members.emplace_back();
    }
    hosts.members[host].push_back(static_cast<std::uint16_t>(rank));
  }
  return hosts;
}

Seat seat_of(const Hosts& hosts, std::uint16_t rank) {
  for (std::size_t host = 0; host < hosts.count(); ++host) {
    const auto& members = hosts.members[host];
    const auto found = std::lower_bound(members.begin(), members.end(), rank);
    if (found == members.end() || *found != rank) continue;
    return {static_cast<std::uint16_t>(host), static_cast<std::uint16_t>(found - members.begin())};
  }
  check_failed(__FILE__, __LINE__, "the rank is a member of a host");
}

}  // namespace cais::runtime
