#include "io/udp/path_mtu.hpp"

#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>

#include "io/fd.hpp"

namespace cais::io {

Result<std::uint32_t> path_mtu(const Address& local, const Address& peer) {
  const Fd fd(::socket(peer.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return system_error("cannot make a UDP socket");
  const Address source = local.with_port(0);
  if (::bind(fd.get(), source.raw(), source.length()) != 0 ||
      ::connect(fd.get(), peer.raw(), peer.length()) != 0) {
    return system_error("there is no way from " + local.host() + " to " + peer.host());
  }
  int mtu = 0;
  socklen_t length = sizeof(mtu);
  const bool v6 = peer.family() == AF_INET6;
  if (::getsockopt(fd.get(), v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU : IP_MTU, &mtu,
                   &length) != 0) {
    return system_error("cannot ask for the path MTU to " + peer.host());
  }
  return static_cast<std::uint32_t>(mtu);
}

std::uint32_t datagram_bytes(std::uint32_t mtu, int family) {
  constexpr std::uint32_t packet_bytes_max = 65'535;
  const std::uint32_t headers =
      (family == AF_INET6 ? sizeof(ip6_hdr) : sizeof(iphdr)) + sizeof(udphdr);
  return std::min(mtu, packet_bytes_max) - std::min(mtu, headers);
}

}  // namespace cais::io
