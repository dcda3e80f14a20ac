#include "runtime/udp/udp_transport.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>

#include "io/clock.hpp"
#include "runtime/udp/box_client.hpp"
#include "runtime/udp/members.hpp"
#include "runtime/udp/mesh.hpp"
#include "runtime/udp/random.hpp"
#include "runtime/udp/udp_session.hpp"
#include "runtime/udp/ways.hpp"

namespace cais::runtime {
namespace {

constexpr Epoch first_epoch{1};
constexpr std::uint32_t window_fragments_min = 8;
// An answer over a network takes several times as long as one through memory.
constexpr int network_spins = 4;

/// What both kinds of group are made from.
struct Making {
  const Settings& settings;
  const GroupConfig& group;
  Rendezvous& rendezvous;
  telemetry::Log log;
  const SocketFactory& open_socket;
  Instant deadline;
};

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "unknown";
  return name;
}

Member describe_self(const Settings& settings, const io::Address& udp, const io::Address& tcp) {
  Member self;
  self.udp = udp;
  self.tcp = tcp;
  self.window = settings.window_fragments;
  self.process = static_cast<std::uint32_t>(::getpid());
  self.session = SessionId(static_cast<std::uint32_t>(random_word() | 1));
  self.secret = random_word();
  self.tags = settings.packet_tags;
  self.tag_secret = random_secret();
  self.switch_ip = settings.switch_ip;
  self.host = host_name();
  return self;
}

std::vector<std::string> names_of(const GroupConfig& group, const std::vector<Member>& members) {
  std::vector<std::string> names;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    names.push_back(members[rank].name(group.outer_rank(rank)));
  }
  return names;
}

std::uint32_t least_window(const std::vector<Member>& members) {
  std::uint32_t least = ~std::uint32_t{0};
  for (const Member& member : members) least = std::min(least, member.window);
  return least;
}

Result<std::uint32_t> agree_on_fragment(const Making& making, const io::Address& local,
                                        std::span<const io::Address> peers) {
  Result<std::uint32_t> mtu = least_path_mtu(making.settings, local, peers);
  if (!mtu) return mtu;
  mtu = agree_on_least(making.rendezvous, making.group, "mtu", *mtu);
  if (!mtu) return mtu;
  return fragment_bytes_for(*mtu, local.family());
}

Result<std::unique_ptr<io::DatagramSocket>> open_socket(const Making& making,
                                                        const io::Address& local) {
  io::UdpOptions options;
  options.gso = making.settings.udp_gso;
  return making.open_socket(local, options);
}

Result<std::unique_ptr<Transport>> begin_session(const Making& making, const EndpointConfig& config,
                                                 std::vector<std::string> names,
                                                 std::vector<std::string> server_names,
                                                 std::unique_ptr<Endpoint> endpoint,
                                                 std::unique_ptr<Management> management) {
  Result<io::Waker> waker = io::Waker::open();
  if (!waker) return waker.error();
  making.log.info(
      telemetry::Subsystem::udp,
      "group '{}': {} ranks, {} lanes, {} switch, {} tags, fragments of {} bytes, window {}",
      making.group.name, making.group.ranks, config.agent.lanes,
      config.embeds_switch ? "embedded" : "external", wire::to_string(config.agent.keys.tags()),
      config.payload_bytes_max, config.agent.window_fragments);
  UdpSessionConfig session;
  session.rank = Rank(making.group.rank);
  session.ranks = making.group.ranks;
  for (std::size_t rank = 0; rank < session.ranks; ++rank) {
    session.outer_ranks.emplace_back(making.group.outer_rank(rank));
  }
  session.lanes = config.agent.lanes;
  session.fragment_bytes = config.payload_bytes_max;
  session.names = std::move(names);
  session.server_names = std::move(server_names);
  session.log = making.log;
  session.spin = network_spins * std::chrono::microseconds(making.settings.spin_us);
  return std::unique_ptr<Transport>(std::make_unique<UdpSession>(
      std::move(session), std::move(endpoint), std::move(management), std::move(*waker)));
}

/// A first window must fit the queues of slow links, whatever the size of a fragment.
std::uint32_t packets_initial(std::size_t lanes, std::uint32_t fragment_bytes) {
  constexpr std::size_t bytes_initial = 384 << 10;
  const std::size_t packets = bytes_initial / (lanes * fragment_bytes);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(packets, 4, 32));
}

/// Every rank serves one lane.
EndpointConfig embedded_endpoint(const GroupConfig& group, const std::vector<Member>& members,
                                 std::uint32_t fragment_bytes) {
  const std::uint32_t in_flight =
      fragments_in_flight(least_window(members) * std::uint32_t{group.ranks}, fragment_bytes);
  EndpointConfig config;
  config.agent.session = members[0].session;
  config.agent.epoch = first_epoch;
  config.agent.rank = Rank(group.rank);
  config.agent.ranks = group.ranks;
  config.agent.lanes = static_cast<std::uint8_t>(group.ranks);
  config.agent.window_fragments =
      std::bit_floor(std::max(in_flight / group.ranks, window_fragments_min));
  config.agent.packets_initial = packets_initial(config.agent.lanes, fragment_bytes);
  config.agent.keys =
      wire::Keys::of_session(members[0].tags, members[0].tag_secret, group.ranks, first_epoch);
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
  config.names = names_of(group, members);
  return config;
}

Result<std::unique_ptr<Transport>> make_embedded(const Making& making) {
  const GroupConfig& group = making.group;
  Result<io::Address> local = local_address(making.settings);
  if (!local) return local.error();
  Result<std::unique_ptr<io::DatagramSocket>> socket = open_socket(making, *local);
  if (!socket) return socket.error();
  Result<io::Listener> listener = io::Listener::open(*local);
  if (!listener) return listener.error();

  const Member self = describe_self(making.settings, (*socket)->address(), listener->address());
  Result<std::vector<Member>> members = exchange_members(making.rendezvous, group, self);
  if (!members) return members.error();
  std::vector<io::Address> peers;
  for (std::size_t rank = 0; rank < members->size(); ++rank) {
    if (rank != group.rank) peers.push_back(members.value()[rank].udp);
  }
  Result<std::uint32_t> fragment = agree_on_fragment(making, *local, peers);
  if (!fragment) return fragment.error();

  const EndpointConfig config = embedded_endpoint(group, *members, *fragment);
  Result<std::unique_ptr<Endpoint>> endpoint = Endpoint::make(config, std::move(*socket));
  if (!endpoint) return endpoint.error();
  Mesh::Define define = [own = endpoint->get()](const wire::CommDescriptor& descriptor) {
    return own->define(descriptor);
  };
  Result<std::unique_ptr<Mesh>> mesh = Mesh::connect(
      mesh_config(group, *members), std::move(*listener), std::move(define), making.deadline);
  if (!mesh) return mesh.error();
  const std::vector<std::string> names = names_of(group, *members);
  return begin_session(making, config, names, names, std::move(*endpoint), std::move(*mesh));
}

/// All lanes are served by the ports of one box.
EndpointConfig box_endpoint(const GroupConfig& group, wire::Tags tags, const BoxSession& session,
                            const io::Address& box, std::uint32_t fragment_bytes) {
  EndpointConfig config;
  config.embeds_switch = false;
  config.agent.session = session.session;
  config.agent.epoch = session.epoch;
  config.agent.rank = Rank(group.rank);
  config.agent.ranks = group.ranks;
  config.agent.lanes = static_cast<std::uint8_t>(session.lane_ports.size());
  config.agent.window_fragments = session.window_fragments;
  config.agent.packets_initial = packets_initial(config.agent.lanes, fragment_bytes);
  config.agent.keys = wire::Keys::of_rank(tags, session.secrets, config.agent.rank, session.epoch);
  config.payload_bytes_max = fragment_bytes;
  for (std::uint32_t lane = 0; lane < session.lane_ports.size(); ++lane) {
    config.addresses.push_back(box.with_port(session.lane_ports[lane]));
    config.lane_servers.push_back(lane);
  }
  return config;
}

Result<std::unique_ptr<Transport>> make_through_box(const Making& making) {
  const GroupConfig& group = making.group;
  Result<io::Address> box =
      io::Address::resolve(making.settings.switch_ip, management_port_default);
  if (!box) {
    return Error{box.error().code, "CAIS_SWITCH_IP: " + box.error().message};
  }
  Result<io::Address> local = local_address_towards(making.settings, *box);
  if (!local) return local.error();
  Result<std::unique_ptr<io::DatagramSocket>> socket = open_socket(making, *local);
  if (!socket) return socket.error();
  const Member self = describe_self(making.settings, (*socket)->address(), io::Address());
  Result<std::vector<Member>> members = exchange_members(making.rendezvous, group, self);
  if (!members) return members.error();
  Result<std::uint32_t> fragment = agree_on_fragment(making, *local, {&*box, 1});
  if (!fragment) return fragment.error();

  BoxJoin join;
  join.switch_address = box->to_string();
  join.group = group.name + "#" + std::to_string(members.value()[0].secret);
  join.rank = Rank(group.rank);
  join.ranks = group.ranks;
  join.name = self.name(group.outer_rank(group.rank));
  join.udp_address = self.udp.to_string();
  join.tags = self.tags;
  join.fragment_bytes = *fragment;
  join.window_fragments = fragments_in_flight(least_window(*members), *fragment);
  Result<std::unique_ptr<BoxClient>> client = BoxClient::join(join, making.deadline);
  if (!client) return client.error();
  const EndpointConfig config =
      box_endpoint(group, join.tags, (*client)->session(), *box, *fragment);
  Result<std::unique_ptr<Endpoint>> endpoint = Endpoint::make(config, std::move(*socket));
  if (!endpoint) return endpoint.error();
  std::vector<std::string> ports;
  for (const io::Address& port : config.addresses) {
    ports.push_back("the cais-switch at " + port.to_string());
  }
  return begin_session(making, config, names_of(group, *members), std::move(ports),
                       std::move(*endpoint), std::move(*client));
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
                                                      const SocketFactory& open_socket) {
  Result<telemetry::LogConfig> log_config =
      telemetry::parse_log_config(settings.debug, settings.debug_subsys, settings.debug_file);
  if (!log_config) return log_config.error();
  Result<telemetry::Log> log = telemetry::Log::open(*log_config);
  if (!log) return log.error();
  const Making making{settings,    group,
                      rendezvous,  log->with_rank(group.outer_rank(group.rank)),
                      open_socket, io::now() + group.timeout};
  return settings.switch_ip.empty() ? make_embedded(making) : make_through_box(making);
}

}  // namespace cais::runtime
