#include "rpc/convert.hpp"

#include <cstring>

namespace cais::rpc {
namespace {

grpc::StatusCode code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::malformed:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case ErrorCode::resource_exhausted:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case ErrorCode::unsupported:
      return grpc::StatusCode::UNIMPLEMENTED;
    case ErrorCode::timed_out:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case ErrorCode::unavailable:
      return grpc::StatusCode::UNAVAILABLE;
    case ErrorCode::mismatch:
    case ErrorCode::rank_lost:
    case ErrorCode::aborted:
    case ErrorCode::system:
      break;
  }
  return grpc::StatusCode::ABORTED;
}

ErrorCode code_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
      return ErrorCode::invalid_argument;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return ErrorCode::resource_exhausted;
    case grpc::StatusCode::UNIMPLEMENTED:
      return ErrorCode::unsupported;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return ErrorCode::timed_out;
    case grpc::StatusCode::ABORTED:
      return ErrorCode::aborted;
    default:
      return ErrorCode::unavailable;
  }
}

}  // namespace

v1::SessionEvent to_proto(const SessionEvent& event) {
  v1::SessionEvent message;
  if (const auto* joined = std::get_if<Joined>(&event)) {
    v1::Joined& out = *message.mutable_joined();
    out.set_session(joined->session.value);
    out.set_epoch(joined->epoch.value);
    for (const std::uint16_t port : joined->lane_ports) out.add_lane_ports(port);
    out.set_window_fragments(joined->window_fragments);
    out.set_own_secret(joined->secrets.own.bytes.data(), joined->secrets.own.bytes.size());
    out.set_group_secret(joined->secrets.group.bytes.data(), joined->secrets.group.bytes.size());
  } else if (const auto* mismatched = std::get_if<Mismatched>(&event)) {
    v1::Mismatched& out = *message.mutable_mismatched();
    out.set_first(mismatched->first.value);
    out.set_second(mismatched->second.value);
    out.set_first_descriptor(mismatched->first_descriptor);
    out.set_second_descriptor(mismatched->second_descriptor);
  } else if (const auto* left = std::get_if<Left>(&event)) {
    message.mutable_left()->set_rank(left->rank.value);
    message.mutable_left()->set_ops(left->ops);
  } else if (const auto* ended = std::get_if<Ended>(&event)) {
    message.mutable_ended()->set_code(static_cast<std::uint32_t>(ended->error.code));
    message.mutable_ended()->set_message(ended->error.message);
  }
  return message;
}

v1::StatusReply to_proto(const Status& status) {
  v1::StatusReply message;
  message.set_workers(status.workers);
  message.set_slots_in_use(status.slots_in_use);
  message.set_packets_received(status.packets_received);
  message.set_packets_accepted(status.packets_accepted);
  for (const auto& [reason, count] : status.packets_dropped) {
    (*message.mutable_packets_dropped())[reason] = count;
  }
  for (const SessionStatus& session : status.sessions) {
    v1::SessionStatus& out = *message.add_sessions();
    out.set_session(session.session.value);
    out.set_group(session.group);
    out.set_ranks(session.ranks);
    out.set_present(session.present);
  }
  return message;
}

Result<JoinRequest> from_proto(const v1::JoinRequest& request) {
  if (request.ranks() == 0 || request.ranks() > ranks_max || request.rank() >= request.ranks()) {
    return Error{ErrorCode::invalid_argument,
                 "rank " + std::to_string(request.rank()) + " of " +
                     std::to_string(request.ranks()) + ": a group has 1 to " +
                     std::to_string(ranks_max) + " ranks, counted from 0"};
  }
  if (request.tags() != v1::TAGS_KEYED && request.tags() != v1::TAGS_CHECKSUM) {
    return Error{ErrorCode::invalid_argument,
                 "packet tags of kind " + std::to_string(request.tags()) +
                     " are not known here; run the same version of CAIS everywhere"};
  }
  JoinRequest out;
  out.group = request.group();
  out.rank = Rank(static_cast<std::uint16_t>(request.rank()));
  out.ranks = static_cast<std::uint16_t>(request.ranks());
  out.udp_address = request.udp_address();
  out.tags = static_cast<wire::Tags>(request.tags());
  out.fragment_bytes = request.fragment_bytes();
  out.window_fragments = request.window_fragments();
  out.name = request.name();
  return out;
}

Member from_proto(const v1::Member& member) {
  Member out{SessionId(member.session()), Rank(static_cast<std::uint16_t>(member.rank())), {}};
  if (is_secret(member.own_secret())) {
    std::memcpy(out.own.bytes.data(), member.own_secret().data(), out.own.bytes.size());
  }
  return out;
}

bool is_secret(const std::string& bytes) { return bytes.size() == sizeof(wire::Secret::bytes); }

ErrorCode error_code_of(std::uint32_t number) {
  const bool known = number <= static_cast<std::uint32_t>(ErrorCode::system);
  return known ? static_cast<ErrorCode>(number) : ErrorCode::aborted;
}

grpc::Status to_status(const Result<void>& result) {
  if (result.ok()) return grpc::Status::OK;
  return grpc::Status(code_of(result.error().code), result.error().message);
}

Error to_error(const grpc::Status& status, const std::string& whom) {
  const ErrorCode code = code_of(status.error_code());
  return Error{code, whom + (code == ErrorCode::unavailable ? " does not answer: " : ": ") +
                         status.error_message()};
}

}  // namespace cais::rpc
