// io/address.hpp — an IPv4 or IPv6 address with a port.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace cais::io {

class Address {
 public:
  /// 0.0.0.0:0
  Address();
  /// From the kernel; anything but IPv4 and IPv6 becomes 0.0.0.0:0. IPv4 mapped into IPv6 is IPv4.
  static Address from(const sockaddr* address);
  /// "10.0.0.1:5000", "[fe80::1]:5000", or without a port. Numbers only, no names.
  static Result<Address> parse(std::string_view text, std::uint16_t default_port = 0);
  /// The same, but a host name is looked up.
  static Result<Address> resolve(std::string_view text, std::uint16_t default_port = 0);

  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const;
  int family() const { return storage_.v4.sin_family; }
  std::uint16_t port() const;
  Address with_port(std::uint16_t port) const;
  bool is_any() const;

  bool operator==(const Address& other) const;
  std::uint64_t hash() const;
  std::string to_string() const;
  /// Without the port.
  std::string host() const;

 private:
  union Storage {
    sockaddr_in v4;
    sockaddr_in6 v6;
  } storage_;
};

}  // namespace cais::io
