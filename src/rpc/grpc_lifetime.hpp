// rpc/grpc_lifetime.hpp — gRPC, once started, stays until the process ends.
#pragma once

#include <grpc/grpc.h>

namespace cais::rpc {

/// Call before the first channel or server. Without it gRPC ends with the last object, which may be
/// one that a callback still holds: a thread of gRPC then takes the library down while `main`
/// returns, and now and then the process aborts ("assertion failed: prior > 0").
inline void keep_grpc() { [[maybe_unused]] static const bool kept = (grpc_init(), true); }

}  // namespace cais::rpc
