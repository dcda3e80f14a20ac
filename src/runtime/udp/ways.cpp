#include "runtime/udp/ways.hpp"

#include <sys/socket.h>

#include <algorithm>

#include "core/switching/limits.hpp"
#include "io/fd.hpp"
#include "io/interfaces.hpp"
#include "io/udp/path_mtu.hpp"
#include "wire/header.hpp"

namespace cais::runtime {
namespace {

// Of the windows of P1. Agents use half of it, and less where answers queue: enough for 8 Gbit/s at
// a round trip of 1 ms.
constexpr std::uint32_t in_flight_bytes_max = 2u << 20;
constexpr std::uint32_t fragment_step = 16;
constexpr std::uint32_t mtu_of_nobody = 1500;  // for a group of one, whose packets go nowhere

}  // namespace

Result<io::Address> local_address(const Settings& settings) {
  Result<std::vector<io::Interface>> interfaces = io::interfaces_up();
  if (!interfaces) return interfaces.error();
  Result<io::Interface> chosen = io::choose_interface(settings.socket_ifname, *interfaces);
  if (!chosen) return chosen.error();
  return io::Address::parse(chosen->ipv6 ? "[" + chosen->address + "]" : chosen->address);
}

Result<io::Address> local_address_towards(const Settings& settings, const io::Address& peer) {
  if (!settings.socket_ifname.empty()) return local_address(settings);
  const io::Fd fd(::socket(peer.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return io::system_error("cannot make a UDP socket");
  sockaddr_in6 name{};
  socklen_t length = sizeof(name);
  if (::connect(fd.get(), peer.raw(), peer.length()) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &length) != 0) {
    return io::system_error("there is no way to " + peer.host());
  }
  return io::Address::from(reinterpret_cast<const sockaddr*>(&name)).with_port(0);
}

Result<std::uint32_t> least_path_mtu(const Settings& settings, const io::Address& local,
                                     std::span<const io::Address> peers) {
  if (settings.mtu_bytes != 0) return settings.mtu_bytes;
  if (peers.empty()) return mtu_of_nobody;
  std::uint32_t least = ~std::uint32_t{0};
  for (const io::Address& peer : peers) {
    Result<std::uint32_t> mtu = io::path_mtu(local, peer);
    if (!mtu) return mtu;
    least = std::min(least, *mtu);
  }
  return least;
}

Result<std::uint32_t> fragment_bytes_for(std::uint32_t mtu, int family) {
  const std::uint32_t datagram = std::min<std::uint32_t>(
      io::datagram_bytes(mtu, family), switching::payload_bytes_max + wire::header_bytes);
  const std::uint32_t room = datagram - std::min<std::uint32_t>(datagram, wire::header_bytes);
  if (room >= fragment_step) return room / fragment_step * fragment_step;
  return Error{ErrorCode::invalid_argument,
               "an MTU of " + std::to_string(mtu) + " bytes leaves no room for a payload"};
}

std::uint32_t fragments_in_flight(std::uint32_t asked, std::uint32_t fragment_bytes) {
  return std::clamp(in_flight_bytes_max / fragment_bytes, std::uint32_t{1}, asked);
}

}  // namespace cais::runtime
