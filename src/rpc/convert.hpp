// rpc/convert.hpp — between the messages of proto/cais/v1 and plain C++.
#pragma once

#include <grpcpp/support/status.h>

#include "cais/v1/switch.pb.h"
#include "rpc/switch_management.hpp"

namespace cais::rpc {

v1::SessionEvent to_proto(const SessionEvent& event);
v1::StatusReply to_proto(const Status& status);

/// invalid_argument: a number does not fit its field.
Result<JoinRequest> from_proto(const v1::JoinRequest& request);
Member from_proto(const v1::Member& member);

/// Whether the bytes are as many as a wire::Secret has.
bool is_secret(const std::string& bytes);

/// The ErrorCode of that number; aborted where there is none.
ErrorCode error_code_of(std::uint32_t number);

/// The error as a gRPC status; the ErrorCode comes back by `to_error`.
grpc::Status to_status(const Result<void>& result);
/// `whom` is put before what gRPC itself says: it does not know the switch's name.
Error to_error(const grpc::Status& status, const std::string& whom);

}  // namespace cais::rpc
