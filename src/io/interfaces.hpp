// io/interfaces.hpp — which network interface to use: CAIS_SOCKET_IFNAME in NCCL's syntax.
//
//   eth,ens     interfaces whose name begins with one of these, in this order of preference
//   =eth0,eth1  exactly these
//   ^docker     none that begins so;  ^=docker0  not exactly this one
//   (empty)     any but lo and docker*; those only when there is no other
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace cais::io {

struct Interface {
  std::string name;
  std::string address;  // numeric: IPv4, or IPv6 that is not link-local
  bool ipv6 = false;
  bool loopback = false;

  bool operator==(const Interface&) const = default;
};

struct InterfacePattern {
  bool exclude = false;  // ^
  bool exact = false;    // =
  std::vector<std::string> names;

  /// Place of the first of `names` that the interface matches, or names.size().
  std::size_t place_of(std::string_view interface) const;
};

/// invalid_argument: an empty name, or one longer than Linux allows.
Result<InterfacePattern> parse_interface_pattern(std::string_view text);

/// The interface that `text` (NCCL's syntax) chooses among `interfaces`: by place in the list, IPv4
/// before IPv6, then by the order given. unavailable names what there is.
Result<Interface> choose_interface(std::string_view text, const std::vector<Interface>& interfaces);

/// The interfaces of this host (of this network namespace) that are up, one entry per address.
Result<std::vector<Interface>> interfaces_up();

}  // namespace cais::io
