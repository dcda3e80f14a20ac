#include "io/udp/udp_socket.hpp"

#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "io/fd.hpp"

namespace cais::io {
namespace {

constexpr std::size_t messages_max = 64;  // of one sendmmsg or recvmmsg

struct alignas(cmsghdr) ControlBytes {
  std::byte bytes[CMSG_SPACE(sizeof(int))];
};

void set_option(int fd, int level, int name, int value) {
  // Each of these makes the socket faster, none makes it right: a refusal is no error.
  (void)::setsockopt(fd, level, name, &value, sizeof(value));
}

void ask_for_buffers(int fd, std::size_t bytes) {
  const int value = static_cast<int>(bytes);
  for (const auto& [forced, plain] :
       {std::pair{SO_RCVBUFFORCE, SO_RCVBUF}, std::pair{SO_SNDBUFFORCE, SO_SNDBUF}}) {
    // The forced one passes the system's limit, and needs CAP_NET_ADMIN.
    if (::setsockopt(fd, SOL_SOCKET, forced, &value, sizeof(value)) != 0) {
      set_option(fd, SOL_SOCKET, plain, value);
    }
  }
}

// How many of `pieces`, from the first on, make up one packet.
std::size_t pieces_of_packet(std::span<const iovec> pieces, std::size_t packet_bytes) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  while (count < pieces.size() && bytes < packet_bytes) bytes += pieces[count++].iov_len;
  return count;
}

bool means_no_gso(int error) {
  return error == EIO || error == EINVAL || error == ENOPROTOOPT || error == EOPNOTSUPP;
}

bool means_full(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

struct UdpSocket::State {
  Fd fd;
  Address local;
  bool gso = false;
  UdpCounters counters;

  std::array<mmsghdr, messages_max> messages{};
  std::array<ControlBytes, messages_max> control{};
  std::array<sockaddr_in6, messages_max> names{};
  std::array<iovec, messages_max> pieces{};
  std::array<BufferRef, messages_max> buffers;

  std::size_t send_segmented(std::span<const Train> trains);
  bool send_one_by_one(const Train& train, std::uint32_t& packets_done);
  std::uint32_t packets_done = 0;  // of the first unsent train, when it goes packet by packet

  void prepare(std::size_t index, const Address& to, std::span<const iovec> message_pieces);
  void segment(std::size_t index, std::uint32_t packet_bytes);
  bool take(std::size_t index, Arrival& arrival);
};

Result<std::unique_ptr<UdpSocket>> UdpSocket::open(const Address& local,
                                                   const UdpOptions& options) {
  auto state = std::make_unique<State>();
  state->fd = Fd(::socket(local.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int fd = state->fd.get();
  if (fd < 0) return system_error("cannot make a UDP socket");
  if (::bind(fd, local.raw(), local.length()) != 0) {
    return system_error("cannot bind the UDP socket " + local.to_string());
  }
  sockaddr_in6 bound{};
  socklen_t length = sizeof(bound);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    return system_error("cannot ask for the address of a UDP socket");
  }
  state->local = Address::from(reinterpret_cast<const sockaddr*>(&bound));
  ask_for_buffers(fd, options.buffer_bytes);
  const int tos = options.dscp << 2;
  if (local.family() == AF_INET6) {
    set_option(fd, IPPROTO_IPV6, IPV6_TCLASS, tos);
  } else {
    set_option(fd, IPPROTO_IP, IP_TOS, tos);
  }
  if (options.gro) set_option(fd, SOL_UDP, UDP_GRO, 1);
  // Setting the segment size to 0 changes nothing, but tells whether the kernel knows of it.
  const int none = 0;
  state->gso = options.gso && ::setsockopt(fd, SOL_UDP, UDP_SEGMENT, &none, sizeof(none)) == 0;
  return std::unique_ptr<UdpSocket>(new UdpSocket(std::move(state)));
}

UdpSocket::UdpSocket(std::unique_ptr<State> state) : state_(std::move(state)) {}
UdpSocket::~UdpSocket() = default;
int UdpSocket::fd() const { return state_->fd.get(); }
Address UdpSocket::address() const { return state_->local; }
const UdpCounters& UdpSocket::counters() const { return state_->counters; }
bool UdpSocket::gso() const { return state_->gso; }

std::size_t UdpSocket::send(std::span<const Train> trains) {
  std::size_t sent = 0;
  while (sent < trains.size()) {
    if (state_->gso && state_->packets_done == 0) {
      const std::size_t count = state_->send_segmented(trains.subspan(sent));
      sent += count;
      if (count == 0 && state_->gso) break;
    } else {
      if (!state_->send_one_by_one(trains[sent], state_->packets_done)) break;
      state_->packets_done = 0;
      ++sent;
    }
  }
  if (sent < trains.size()) ++state_->counters.full;
  return sent;
}

void UdpSocket::State::prepare(std::size_t index, const Address& to,
                               std::span<const iovec> message_pieces) {
  msghdr& header = messages[index].msg_hdr;
  header = msghdr{};
  header.msg_name = const_cast<sockaddr*>(to.raw());
  header.msg_namelen = to.length();
  header.msg_iov = const_cast<iovec*>(message_pieces.data());
  header.msg_iovlen = message_pieces.size();
}

void UdpSocket::State::segment(std::size_t index, std::uint32_t packet_bytes) {
  msghdr& header = messages[index].msg_hdr;
  header.msg_control = &control[index];
  header.msg_controllen = CMSG_SPACE(sizeof(std::uint16_t));
  cmsghdr* message = CMSG_FIRSTHDR(&header);
  message->cmsg_level = SOL_UDP;
  message->cmsg_type = UDP_SEGMENT;
  message->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
  const auto bytes = static_cast<std::uint16_t>(packet_bytes);
  std::memcpy(CMSG_DATA(message), &bytes, sizeof(bytes));
}

// The number of trains that are done with: taken by the kernel, or refused for good and counted.
// 0 with gso still set: the buffer is full. 0 with gso unset: go on packet by packet.
std::size_t UdpSocket::State::send_segmented(std::span<const Train> trains) {
  const std::size_t count = std::min(trains.size(), messages_max);
  for (std::size_t i = 0; i < count; ++i) {
    prepare(i, trains[i].to, trains[i].pieces);
    if (trains[i].packets > 1) segment(i, trains[i].packet_bytes);
  }
  const int sent = ::sendmmsg(fd.get(), messages.data(), static_cast<unsigned>(count), 0);
  if (sent < 0) {
    if (means_full(errno)) return 0;
    if (trains[0].packets > 1 && means_no_gso(errno)) {
      gso = false;
      return 0;
    }
    counters.refused += trains[0].packets;
    return 1;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(sent); ++i) {
    counters.packets_sent += trains[i].packets;
  }
  counters.messages_sent += static_cast<std::size_t>(sent);
  return static_cast<std::size_t>(sent);
}

// True when the whole train is done with; otherwise `done` says how far it got.
bool UdpSocket::State::send_one_by_one(const Train& train, std::uint32_t& done) {
  std::span<const iovec> rest = train.pieces;
  for (std::uint32_t i = 0; i < done; ++i) {
    rest = rest.subspan(pieces_of_packet(rest, train.packet_bytes));
  }
  while (done < train.packets) {
    std::size_t count = 0;
    std::span<const iovec> ahead = rest;
    for (; count < messages_max && done + count < train.packets; ++count) {
      const std::size_t pieces_count = pieces_of_packet(ahead, train.packet_bytes);
      prepare(count, train.to, ahead.first(pieces_count));
      ahead = ahead.subspan(pieces_count);
    }
    const int sent = ::sendmmsg(fd.get(), messages.data(), static_cast<unsigned>(count), 0);
    if (sent < 0 && means_full(errno)) return false;
    if (sent < 0) {
      ++counters.refused;
    } else {
      counters.packets_sent += static_cast<unsigned>(sent);
      counters.messages_sent += static_cast<unsigned>(sent);
    }
    for (int i = 0; i < std::max(sent, 1); ++i, ++done) {
      rest = rest.subspan(pieces_of_packet(rest, train.packet_bytes));
    }
  }
  return true;
}

std::size_t UdpSocket::receive(BufferPool& pool, std::span<Arrival> out) {
  State& state = *state_;
  const std::size_t wanted = std::min(out.size(), messages_max);
  std::size_t armed = 0;
  for (; armed < wanted; ++armed) {
    BufferRef& buffer = state.buffers[armed];
    buffer = pool.acquire();
    if (!buffer) break;
    state.pieces[armed] = iovec{buffer.data(), receive_buffer_bytes};
    msghdr& header = state.messages[armed].msg_hdr;
    header = msghdr{};
    header.msg_name = &state.names[armed];
    header.msg_namelen = sizeof(state.names[armed]);
    header.msg_iov = &state.pieces[armed];
    header.msg_iovlen = 1;
    header.msg_control = &state.control[armed];
    header.msg_controllen = sizeof(state.control[armed]);
  }
  const int received = armed == 0 ? 0
                                  : ::recvmmsg(fd(), state.messages.data(),
                                               static_cast<unsigned>(armed), MSG_DONTWAIT, nullptr);
  std::size_t filled = 0;
  for (std::size_t i = 0; i < armed; ++i) {
    if (static_cast<int>(i) < received && state.take(i, out[filled])) ++filled;
    state.buffers[i] = {};
  }
  return filled;
}

bool UdpSocket::State::take(std::size_t index, Arrival& arrival) {
  const msghdr& header = messages[index].msg_hdr;
  const std::size_t bytes = messages[index].msg_len;
  if ((header.msg_flags & MSG_TRUNC) != 0) {
    ++counters.truncated;
    return false;
  }
  arrival.from = Address::from(reinterpret_cast<const sockaddr*>(&names[index]));
  arrival.packet_bytes = static_cast<std::uint32_t>(bytes);
  for (cmsghdr* message = CMSG_FIRSTHDR(&header); message != nullptr;
       message = CMSG_NXTHDR(const_cast<msghdr*>(&header), message)) {
    if (message->cmsg_level != SOL_UDP || message->cmsg_type != UDP_GRO) continue;
    int segment = 0;
    std::memcpy(&segment, CMSG_DATA(message), sizeof(segment));
    if (segment > 0) arrival.packet_bytes = static_cast<std::uint32_t>(segment);
  }
  arrival.train = Packet{{buffers[index].data(), bytes}, buffers[index]};
  ++counters.messages_received;
  counters.packets_received +=
      bytes == 0 ? 1 : (bytes + arrival.packet_bytes - 1) / arrival.packet_bytes;
  return true;
}

}  // namespace cais::io
