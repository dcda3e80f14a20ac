// runtime/udp/mesh_messages.hpp — what ranks say to each other over the control channel: one byte
// that tells the kind, then the fields in network byte order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.hpp"
#include "base/types.hpp"
#include "wire/descriptor.hpp"

namespace cais::runtime::mesh {

/// The first message of whoever connects. `secret` tells members of the group from strangers.
struct Hello {
  std::uint64_t secret;
  Rank rank;
};
/// The answer: the session is open at this rank.
struct Welcome {};
/// "Define this at your switch." The answer is Defined.
struct Describe {
  wire::CommDescriptor descriptor;
  wire::CommDescriptor shown;  // to a user, in its place
};
/// "My switch knows it."
struct Defined {
  DescriptorHash descriptor;
};
/// P12, from the rank whose switch found it.
struct Mismatch {
  Rank first, second;
  wire::CommDescriptor first_descriptor, second_descriptor;
};
/// The sender's session has failed, for the same reason at all ranks.
struct Failed {
  ErrorCode code;
  std::string message;
};
/// The sender has started `ops` collectives and needs nothing more.
struct Bye {
  std::uint64_t ops;
};
using Message = std::variant<Hello, Welcome, Describe, Defined, Mismatch, Failed, Bye>;

std::string encode(const Message& message);
/// malformed: not one of these, a wrong length, a field out of range.
Result<Message> decode(std::string_view bytes);

}  // namespace cais::runtime::mesh
