// io/shm/host_identity.hpp — which ranks can share memory: those under one kernel that see each
// other's Unix sockets.
#pragma once

#include <string>

#include "base/result.hpp"

namespace cais::io {

struct HostIdentity {
  std::string key;   // equal at two processes just when they can share memory
  std::string name;  // for people
};

/// The kernel's boot id and the inode of the network namespace.
Result<HostIdentity> host_identity();

}  // namespace cais::io
