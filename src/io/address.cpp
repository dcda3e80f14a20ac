#include "io/address.hpp"

#include <arpa/inet.h>
#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

namespace cais::io {
namespace {

struct HostAndPort {
  std::string host;
  std::uint16_t port;
};

Error unreadable(std::string_view text) {
  return Error{ErrorCode::invalid_argument,
               "'" + std::string(text) +
                   "' is no address; write HOST, HOST:PORT or [IPV6]:PORT, as in 10.0.0.1:5000"};
}

// A bare IPv6 address has several colons and no brackets; then none of them begins a port.
Result<HostAndPort> split(std::string_view text, std::uint16_t default_port) {
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return unreadable(text);
    host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (!port.empty() && !port.starts_with(':')) return unreadable(text);
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    host = text.substr(0, text.find(':'));
    port = text.substr(text.find(':'));
  }
  HostAndPort result{std::string(host), default_port};
  if (host.empty()) return unreadable(text);
  if (port.empty()) return result;
  port.remove_prefix(1);
  const auto [end, error] = std::from_chars(port.begin(), port.end(), result.port);
  if (error != std::errc() || end != port.end()) return unreadable(text);
  return result;
}

}  // namespace

Address::Address() {
  std::memset(&storage_, 0, sizeof(storage_));
  storage_.v4.sin_family = AF_INET;
}

Address Address::from(const sockaddr* address) {
  Address result;
  if (address->sa_family == AF_INET) {
    std::memcpy(&result.storage_.v4, address, sizeof(sockaddr_in));
    std::memset(result.storage_.v4.sin_zero, 0, sizeof(result.storage_.v4.sin_zero));
  } else if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, address, sizeof(v6));
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      result.storage_.v4.sin_port = v6.sin6_port;
      std::memcpy(&result.storage_.v4.sin_addr, &v6.sin6_addr.s6_addr[12], 4);
    } else {
      result.storage_.v6 = v6;
      result.storage_.v6.sin6_flowinfo = 0;
    }
  }
  return result;
}

Result<Address> Address::parse(std::string_view text, std::uint16_t default_port) {
  Result<HostAndPort> parts = split(text, default_port);
  if (!parts) return parts.error();
  Address result;
  if (::inet_pton(AF_INET, parts->host.c_str(), &result.storage_.v4.sin_addr) != 1) {
    if (::inet_pton(AF_INET6, parts->host.c_str(), &result.storage_.v6.sin6_addr) != 1) {
      return unreadable(text);
    }
    result.storage_.v6.sin6_family = AF_INET6;
  }
  return result.with_port(parts->port);
}

Result<Address> Address::resolve(std::string_view text, std::uint16_t default_port) {
  Result<Address> numeric = parse(text, default_port);
  if (numeric) return numeric;
  Result<HostAndPort> parts = split(text, default_port);
  if (!parts) return parts.error();
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(parts->host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    return Error{ErrorCode::invalid_argument,
                 "cannot look up the host '" + parts->host + "': " + ::gai_strerror(error)};
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> guard(found, &::freeaddrinfo);
  return from(found->ai_addr).with_port(parts->port);
}

socklen_t Address::length() const {
  return family() == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

std::uint16_t Address::port() const { return ntohs(storage_.v4.sin_port); }

Address Address::with_port(std::uint16_t port) const {
  Address result = *this;
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  result.storage_.v4.sin_port = htons(port);
  return result;
}

bool Address::is_any() const {
  return family() == AF_INET ? storage_.v4.sin_addr.s_addr == INADDR_ANY
                             : IN6_IS_ADDR_UNSPECIFIED(&storage_.v6.sin6_addr);
}

bool Address::operator==(const Address& other) const {
  if (family() != other.family() || storage_.v4.sin_port != other.storage_.v4.sin_port) {
    return false;
  }
  if (family() == AF_INET) {
    return storage_.v4.sin_addr.s_addr == other.storage_.v4.sin_addr.s_addr;
  }
  return storage_.v6.sin6_scope_id == other.storage_.v6.sin6_scope_id &&
         std::memcmp(&storage_.v6.sin6_addr, &other.storage_.v6.sin6_addr, 16) == 0;
}

std::uint64_t Address::hash() const {
  std::uint64_t word = storage_.v4.sin_addr.s_addr;
  if (family() == AF_INET6) {
    std::uint64_t halves[2];
    std::memcpy(halves, &storage_.v6.sin6_addr, sizeof(halves));
    word = halves[0] * 0x9e3779b97f4a7c15u ^ halves[1];
  }
  word = (word << 16 ^ storage_.v4.sin_port ^ word >> 48) * 0x9e3779b97f4a7c15u;
  return word ^ word >> 32;
}

std::string Address::host() const {
  char text[INET6_ADDRSTRLEN];
  const void* bytes = family() == AF_INET6 ? static_cast<const void*>(&storage_.v6.sin6_addr)
                                           : static_cast<const void*>(&storage_.v4.sin_addr);
  return ::inet_ntop(family(), bytes, text, sizeof(text)) == nullptr ? "?" : text;
}

std::string Address::to_string() const {
  const std::string port_text = ":" + std::to_string(port());
  return family() == AF_INET6 ? "[" + host() + "]" + port_text : host() + port_text;
}

}  // namespace cais::io
