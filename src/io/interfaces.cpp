// io/interfaces.cpp — lists the host's interfaces and chooses one by NCCL's syntax.
#include "io/interfaces.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>

namespace cais::io {
namespace {

std::optional<Interface> interface_from(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return std::nullopt;
  Interface result{.name = entry.ifa_name,
                   .address = {},
                   .ipv6 = entry.ifa_addr->sa_family == AF_INET6,
                   .loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0};
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (entry.ifa_addr->sa_family == AF_INET) {
    const auto* address = reinterpret_cast<const sockaddr_in*>(entry.ifa_addr);
    inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
  } else if (result.ipv6) {
    const auto* address = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr);
    if (IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr)) return std::nullopt;
    inet_ntop(AF_INET6, &address->sin6_addr, text.data(), text.size());
  } else {
    return std::nullopt;
  }
  result.address = text.data();
  return result;
}

// Smaller is better; nothing when the pattern rules the interface out.
std::optional<std::size_t> preference(const InterfacePattern& pattern, const Interface& interface) {
  if (pattern.names.empty()) {
    return interface.loopback ? 2 : (interface.name.starts_with("docker") ? 1 : 0);
  }
  const std::size_t place = pattern.place_of(interface.name);
  const bool named = place < pattern.names.size();
  if (named == pattern.exclude) return std::nullopt;
  return pattern.exclude ? (interface.loopback ? 1 : 0) : place;
}

}  // namespace

std::size_t InterfacePattern::place_of(std::string_view interface) const {
  const auto at = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
    return exact ? interface == name : interface.starts_with(name);
  });
  return static_cast<std::size_t>(at - names.begin());
}

Result<InterfacePattern> parse_interface_pattern(std::string_view text) {
  InterfacePattern pattern;
  if (text.empty()) return pattern;
  std::string_view rest = text;
  if (rest.starts_with('^')) {
    pattern.exclude = true;
    rest.remove_prefix(1);
  }
  if (rest.starts_with('=')) {
    pattern.exact = true;
    rest.remove_prefix(1);
  }
  while (true) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view name = rest.substr(0, comma);
    if (name.empty() || name.size() >= IFNAMSIZ || name.find_first_of("^=") != name.npos) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("CAIS_SOCKET_IFNAME '{}': '{}' is no interface name; write names of "
                               "at most {} letters with commas between them, after an optional ^ "
                               "(none of these) and = (exactly these)",
                               text, name, IFNAMSIZ - 1)};
    }
    pattern.names.emplace_back(name);
    if (comma == rest.size()) return pattern;
    rest.remove_prefix(comma + 1);
  }
}

Result<Interface> choose_interface(std::string_view text,
                                   const std::vector<Interface>& interfaces) {
  const Result<InterfacePattern> pattern = parse_interface_pattern(text);
  if (!pattern.ok()) return pattern.error();
  const Interface* best = nullptr;
  std::tuple<std::size_t, bool> best_preference;
  std::vector<std::string> seen;
  for (const Interface& interface : interfaces) {
    seen.push_back(interface.name + " " + interface.address);
    const std::optional<std::size_t> place = preference(*pattern, interface);
    if (!place) continue;
    const std::tuple<std::size_t, bool> candidate{*place, interface.ipv6};
    if (best == nullptr || candidate < best_preference) {
      best = &interface;
      best_preference = candidate;
    }
  }
  if (best != nullptr) return *best;
  return Error{ErrorCode::unavailable,
               fmt::format("CAIS_SOCKET_IFNAME '{}' matches no interface that is up with an "
                           "address; there are: {}",
                           text, seen.empty() ? "none" : fmt::format("{}", fmt::join(seen, ", ")))};
}

Result<std::vector<Interface>> interfaces_up() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return Error{ErrorCode::system,
                 fmt::format("cannot list the network interfaces: {}", std::strerror(errno))};
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::vector<Interface> interfaces;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (std::optional<Interface> interface = interface_from(*entry)) {
      interfaces.push_back(*std::move(interface));
    }
  }
  return interfaces;
}

}  // namespace cais::io
