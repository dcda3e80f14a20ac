// runtime/placement.hpp — which ranks are where, and so which transport carries the group.
#pragma once

#include "base/result.hpp"
#include "runtime/communicator.hpp"
#include "runtime/rendezvous.hpp"
#include "runtime/settings.hpp"

namespace cais::runtime {

enum class Placement : std::uint8_t { one_host, many_hosts };

/// Collective: each rank tells the others where it is. The answer is the same at all ranks.
/// timed_out names the ranks that did not come. invalid_argument: Settings::transport differs
/// between ranks, or asks for shared memory between hosts.
Result<Placement> find_placement(const Settings& settings, const GroupConfig& config,
                                 Rendezvous& rendezvous);

}  // namespace cais::runtime
