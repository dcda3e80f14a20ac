// rpc/server.hpp — the gRPC server of a cais-switch. It only translates: what happens is the
// business of the SwitchManagement behind it.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "rpc/switch_management.hpp"

namespace cais::rpc {

class Server {
 public:
  /// Listens on `address` ("0.0.0.0:5400"; port 0: any). `management` must outlive the server.
  static Result<std::unique_ptr<Server>> start(const std::string& address,
                                               SwitchManagement& management);
  virtual ~Server() = default;
  virtual int port() const = 0;
  /// Ends all streams; returns when they have ended.
  virtual void stop() = 0;
};

}  // namespace cais::rpc
