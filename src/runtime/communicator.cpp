// How a group is made: where its ranks are decides which transport carries it.
#include "runtime/communicator.hpp"

#include <fmt/format.h>

#include "runtime/group_communicator.hpp"
#include "runtime/mixed/mixed_transport.hpp"
#include "runtime/placement.hpp"
#include "runtime/shm/group.hpp"
#include "runtime/shm/shm_transport.hpp"
#include "runtime/udp/udp_transport.hpp"

namespace cais::runtime {
namespace {

Result<void> check(const GroupConfig& config) {
  if (config.ranks == 0 || config.ranks > ranks_max) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("a group has 1 to {} ranks, not {}", ranks_max, config.ranks)};
  }
  if (config.rank >= config.ranks) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("rank {} is not in [0, {})", config.rank, config.ranks)};
  }
  return {};
}

Result<std::unique_ptr<Transport>> make_shm_transport(const Settings& settings,
                                                      const GroupConfig& config,
                                                      Rendezvous& rendezvous) {
  auto group = shm::connect_group(settings, config, rendezvous);
  if (!group) return group.error();
  const shm::Tuning tuning = shm::tuning_for(group->ranks(), group->cores);
  return std::unique_ptr<Transport>(
      std::make_unique<shm::ShmTransport>(settings, std::move(*group), tuning));
}

mixed::Leg leg_over(std::unique_ptr<Transport> transport, const Settings& settings,
                    const GroupConfig& config) {
  const GroupTraits traits = traits_of(settings, config, *transport);
  return {std::move(transport), PlanCache(traits)};
}

/// Shared memory among the ranks of this host; UDP between the hosts' leaders.
Result<std::unique_ptr<Transport>> make_mixed_transport(const Settings& settings,
                                                        const GroupConfig& config,
                                                        const Hosts& hosts,
                                                        Rendezvous& rendezvous) {
  const Seat seat = seat_of(hosts, config.rank);
  GroupConfig local = config;
  local.name = fmt::format("{}/host{}", config.name, seat.host);
  local.rank = seat.index;
  local.ranks = static_cast<std::uint16_t>(hosts.members[seat.host].size());
  local.outer_ranks = hosts.members[seat.host];
  auto inside = make_shm_transport(settings, local, rendezvous);
  if (!inside) return inside.error();
  mixed::Leg across;
  if (seat.index == 0) {
    GroupConfig leaders = config;
    leaders.name = config.name + "/leaders";
    leaders.rank = seat.host;
    leaders.ranks = static_cast<std::uint16_t>(hosts.count());
    for (const auto& members : hosts.members) leaders.outer_ranks.push_back(members.front());
    auto between = make_udp_transport(settings, leaders, rendezvous);
    if (!between) return between.error();
    across = leg_over(std::move(*between), settings, leaders);
  }
  return std::unique_ptr<Transport>(std::make_unique<mixed::MixedTransport>(
      hosts, seat, leg_over(std::move(*inside), settings, local), std::move(across)));
}

Result<std::unique_ptr<Transport>> make_transport(const Settings& settings,
                                                  const GroupConfig& config,
                                                  Rendezvous& rendezvous) {
  if (config.ranks == 1) return make_shm_transport(settings, config, rendezvous);
  auto hosts = find_hosts(settings, config, rendezvous);
  if (!hosts) return hosts.error();
  if (settings.transport == TransportChoice::udp || hosts->members_max() == 1) {
    return make_udp_transport(settings, config, rendezvous);
  }
  if (hosts->count() == 1) return make_shm_transport(settings, config, rendezvous);
  return make_mixed_transport(settings, config, *hosts, rendezvous);
}

}  // namespace

Result<std::shared_ptr<Communicator>> Communicator::create(const Settings& settings,
                                                           const GroupConfig& config,
                                                           Rendezvous& rendezvous) {
  if (auto checked = check(config); !checked) return checked.error();
  auto transport = make_transport(settings, config, rendezvous);
  if (!transport) return transport.error();
  return std::shared_ptr<Communicator>(
      std::make_shared<GroupCommunicator>(settings, config, std::move(*transport)));
}

}  // namespace cais::runtime
