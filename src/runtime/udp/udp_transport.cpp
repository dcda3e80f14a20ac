#include "runtime/udp/udp_transport.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "io/clock.hpp"
#include "io/interfaces.hpp"
#include "io/udp/path_mtu.hpp"
#include "io/udp/udp_socket.hpp"
#include "runtime/udp/members.hpp"
#include "runtime/udp/mesh.hpp"
#include "runtime/udp/udp_session.hpp"

namespace cais::runtime {
namespace {

// What all lanes together may have in flight: enough for 10 Gbit/s at 1 ms, and little enough for
// the queues of a slow link.
constexpr std::uint32_t in_flight_bytes_max = 1u << 20;
constexpr std::uint32_t window_fragments_min = 8;
constexpr std::uint32_t fragment_step = 16;  // every dtype divides it
constexpr Epoch first_epoch{1};

Result<io::Address> local_address(const Settings& settings) {
  Result<std::vector<io::Interface>> interfaces = io::interfaces_up();
  if (!interfaces) return interfaces.error();
  Result<io::Interface> chosen = io::choose_interface(settings.socket_ifname, *interfaces);
  if (!chosen) return chosen.error();
  return io::Address::parse(chosen->ipv6 ? "[" + chosen->address + "]" : chosen->address);
}

std::uint64_t random_word() {
  std::uint64_t word = 0;
  CAIS_CHECK(::getrandom(&word, sizeof(word), 0) == sizeof(word));
  return word;
}

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "unknown";
  return name;
}

std::uint32_t fragment_bytes_for(std::uint32_t mtu, int family) {
  const std::uint32_t datagram = io::datagram_bytes(mtu, family);
  const std::uint32_t payload =
      std::min<std::uint32_t>(datagram - std::min<std::uint32_t>(datagram, wire::header_bytes),
                              switching::payload_bytes_max);
  return payload / fragment_step * fragment_step;
}

/// Of this rank's ways to all others, the narrowest.
Result<std::uint32_t> least_path_mtu(const std::vector<Member>& members, std::size_t self) {
  std::uint32_t least = ~std::uint32_t{0};
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    if (rank == self) continue;
    Result<std::uint32_t> mtu = io::path_mtu(members[self].udp, members[rank].udp);
    if (!mtu) return mtu.error();
    least = std::min(least, *mtu);
  }
  return members.size() == 1 ? 1500 : least;
}

Result<std::uint32_t> agree_on_fragment(const Settings& settings, const GroupConfig& group,
                                        Rendezvous& rendezvous,
                                        const std::vector<Member>& members) {
  Result<std::uint32_t> mtu = least_path_mtu(members, group.rank);
  if (!mtu) return mtu;
  const std::uint32_t asked = settings.mtu_bytes == 0 ? *mtu : settings.mtu_bytes;
  mtu = agree_on_least(rendezvous, group, "mtu", asked);
  if (!mtu) return mtu;
  const std::uint32_t fragment = fragment_bytes_for(*mtu, members[group.rank].udp.family());
  if (fragment == 0) {
    return Error{ErrorCode::invalid_argument,
                 "an MTU of " + std::to_string(*mtu) + " bytes leaves no room for a payload"};
  }
  return fragment;
}

std::uint32_t window_for(std::uint32_t asked, std::uint32_t fragment, std::size_t lanes) {
  const std::uint32_t fits = in_flight_bytes_max / (fragment * static_cast<std::uint32_t>(lanes));
  return std::bit_floor(std::max(std::min(asked, fits), window_fragments_min));
}

std::vector<std::string> names_of(const std::vector<Member>& members) {
  std::vector<std::string> names;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    names.push_back(members[rank].name(rank));
  }
  return names;
}

/// Every rank serves one lane.
EndpointConfig embedded_endpoint(const GroupConfig& group, const std::vector<Member>& members,
                                 std::uint32_t fragment_bytes) {
  std::uint32_t window = ~std::uint32_t{0};
  for (const Member& member : members) window = std::min(window, member.window);
  EndpointConfig config;
  config.agent.session = members[0].session;
  config.agent.epoch = first_epoch;
  config.agent.rank = Rank(group.rank);
  config.agent.ranks = group.ranks;
  config.agent.lanes = static_cast<std::uint8_t>(group.ranks);
  config.agent.window_fragments = window_for(window, fragment_bytes, group.ranks);
  config.agent.tag_seed = members[0].secret;
  config.payload_bytes_max = fragment_bytes;
  for (std::uint32_t rank = 0; rank < group.ranks; ++rank) {
    config.addresses.push_back(members[rank].udp);
    config.lane_servers.push_back(rank);
  }
  return config;
}

MeshConfig mesh_config(const GroupConfig& group, const std::vector<Member>& members) {
  MeshConfig config;
  config.rank = Rank(group.rank);
  config.secret = members[0].secret;
  config.local = members[group.rank].tcp;
  for (const Member& member : members) config.addresses.push_back(member.tcp);
  config.names = names_of(members);
  return config;
}

Member describe_self(const Settings& settings, const io::Address& udp, const io::Address& tcp) {
  Member self;
  self.udp = udp;
  self.tcp = tcp;
  self.window = settings.window_fragments;
  self.process = static_cast<std::uint32_t>(::getpid());
  self.session = SessionId(static_cast<std::uint32_t>(random_word() | 1));
  self.secret = random_word();
  self.switch_ip = settings.switch_ip;
  self.host = host_name();
  return self;
}

}  // namespace

Result<std::unique_ptr<io::DatagramSocket>> open_udp_socket(const io::Address& local,
                                                            const io::UdpOptions& options) {
  Result<std::unique_ptr<io::UdpSocket>> socket = io::UdpSocket::open(local, options);
  if (!socket) return socket.error();
  return std::unique_ptr<io::DatagramSocket>(std::move(*socket));
}

Result<std::unique_ptr<Transport>> make_udp_transport(const Settings& settings,
                                                      const GroupConfig& group,
                                                      Rendezvous& rendezvous,
                                                      const telemetry::Log& log,
                                                      const SocketFactory& open_socket) {
  const Instant deadline = io::now() + group.timeout;
  Result<io::Address> local = local_address(settings);
  if (!local) return local.error();
  io::UdpOptions options;
  options.gso = settings.udp_gso;
  Result<std::unique_ptr<io::DatagramSocket>> socket = open_socket(*local, options);
  if (!socket) return socket.error();
  Result<io::Listener> listener = io::Listener::open(*local);
  if (!listener) return listener.error();
  Result<io::Waker> waker = io::Waker::open();
  if (!waker) return waker.error();

  const Member self = describe_self(settings, (*socket)->address(), listener->address());
  Result<std::vector<Member>> members = exchange_members(rendezvous, group, self);
  if (!members) return members.error();
  Result<std::uint32_t> fragment = agree_on_fragment(settings, group, rendezvous, *members);
  if (!fragment) return fragment.error();

  const EndpointConfig config = embedded_endpoint(group, *members, *fragment);
  Result<std::unique_ptr<Endpoint>> endpoint = Endpoint::make(config, std::move(*socket));
  if (!endpoint) return endpoint.error();
  Mesh::Define define = [own = endpoint->get()](const wire::CommDescriptor& descriptor) {
    return own->define(descriptor);
  };
  Result<std::unique_ptr<Mesh>> mesh = Mesh::connect(
      mesh_config(group, *members), std::move(*listener), std::move(define), deadline);
  if (!mesh) return mesh.error();

  UdpSessionConfig session{Rank(group.rank), group.ranks,        config.agent.lanes,
                           *fragment,        names_of(*members), log};
  return std::unique_ptr<Transport>(std::make_unique<UdpSession>(
      std::move(session), std::move(*endpoint), std::move(*mesh), std::move(*waker)));
}

}  // namespace cais::runtime
