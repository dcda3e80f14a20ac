// runtime/placement.hpp — which ranks are where, and so which transport carries the group.
#pragma once

#include "base/result.hpp"
#include "runtime/communicator.hpp"
#include "runtime/hosts.hpp"
#include "runtime/rendezvous.hpp"
#include "runtime/settings.hpp"

namespace cais::runtime {

/// Collective: each rank tells the others where it is, and learns which ranks share a host. The
/// answer is the same at all ranks. timed_out names the ranks that did not come. invalid_argument:
/// Settings::transport differs between ranks, or asks for shared memory between hosts.
Result<Hosts> find_hosts(const Settings& settings, const GroupConfig& config,
                         Rendezvous& rendezvous);

}  // namespace cais::runtime
