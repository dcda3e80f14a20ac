// io/udp/path_mtu.hpp — how large a packet may be on the way between two hosts.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "io/address.hpp"

namespace cais::io {

/// Bytes of an IP packet that the route from `local` to `peer` takes whole, as far as this host
/// knows: the MTU of the interface, or less when the path has told so before.
Result<std::uint32_t> path_mtu(const Address& local, const Address& peer);

/// Payload of a UDP datagram in an IP packet of `mtu` bytes.
std::uint32_t datagram_bytes(std::uint32_t mtu, int family);

}  // namespace cais::io
