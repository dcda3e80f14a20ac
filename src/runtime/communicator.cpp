// How a group is made: where its ranks are decides which transport carries it.
#include "runtime/communicator.hpp"

#include <fmt/format.h>

#include "runtime/group_communicator.hpp"
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

Result<std::unique_ptr<Transport>> make_transport(const Settings& settings,
                                                  const GroupConfig& config,
                                                  Rendezvous& rendezvous) {
  Placement placement = Placement::one_host;
  if (config.ranks > 1) {
    auto found = find_placement(settings, config, rendezvous);
    if (!found) return found.error();
    placement = *found;
  }
  if (settings.transport == TransportChoice::udp || placement == Placement::many_hosts) {
    return make_udp_transport(settings, config, rendezvous);
  }
  auto group = shm::connect_group(settings, config, rendezvous);
  if (!group) return group.error();
  return std::unique_ptr<Transport>(
      std::make_unique<shm::ShmTransport>(settings, std::move(*group)));
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
