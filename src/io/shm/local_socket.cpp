#include "io/shm/local_socket.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "io/clock.hpp"

namespace cais::io {
namespace {

constexpr std::size_t name_bytes = 16;  // random: two listeners never meet
constexpr int backlog = 64;

struct Address {
  sockaddr_un socket{};
  socklen_t bytes = 0;
};

Address address_of(const std::string& name) {
  Address address;
  address.socket.sun_family = AF_UNIX;
  std::memcpy(address.socket.sun_path + 1, name.data(),
              std::min(name.size(), sizeof(address.socket.sun_path) - 1));
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Result<std::string> random_name() {
  std::array<unsigned char, name_bytes> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return system_error("cannot draw a random name (getrandom)");
  }
  std::string name = "cais-";
  for (const unsigned char byte : random) {
    name += "0123456789abcdef"[byte >> 4];
    name += "0123456789abcdef"[byte & 15];
  }
  return name;
}

/// Whether `fd` has something to read before `deadline`.
bool readable(int fd, Instant deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now()).count();
    pollfd poll{fd, POLLIN, 0};
    const int ready = ::poll(&poll, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
    if (ready > 0) return true;
    if (left <= 0 && ready == 0) return false;
  }
}

bool same_user(int fd) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == ::geteuid();
}

Result<Fd> new_socket() {
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return system_error("cannot open a Unix socket");
  return fd;
}

}  // namespace

Result<LocalSocket> LocalSocket::listen() {
  auto name = random_name();
  if (!name) return name.error();
  auto fd = new_socket();
  if (!fd) return fd.error();
  const Address address = address_of(*name);
  if (::bind(fd->get(), reinterpret_cast<const sockaddr*>(&address.socket), address.bytes) != 0 ||
      ::listen(fd->get(), backlog) != 0) {
    return system_error("cannot listen on the abstract Unix socket " + *name);
  }
  LocalSocket socket(std::move(*fd));
  socket.name_ = *name;
  return socket;
}

Result<LocalSocket> LocalSocket::connect(const std::string& name) {
  if (name.size() >= sizeof(sockaddr_un::sun_path)) {
    return Error{ErrorCode::malformed, "the name of a Unix socket is too long: " + name};
  }
  auto fd = new_socket();
  if (!fd) return fd.error();
  const Address address = address_of(name);
  if (::connect(fd->get(), reinterpret_cast<const sockaddr*>(&address.socket), address.bytes) !=
      0) {
    return Error{ErrorCode::unavailable, system_error("cannot connect to " + name).message};
  }
  return LocalSocket(std::move(*fd));
}

Result<std::optional<LocalSocket>> LocalSocket::accept(Instant deadline) {
  while (readable(fd_.get(), deadline)) {
    Fd peer(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer && errno != EINTR && errno != ECONNABORTED) return system_error("cannot accept");
    if (peer && same_user(peer.get())) return std::optional(LocalSocket(std::move(peer)));
  }
  return std::optional<LocalSocket>();
}

Result<void> LocalSocket::send(std::span<const std::byte> bytes, std::span<const int> fds) {
  CAIS_CHECK(bytes.size() <= local_message_bytes_max && fds.size() <= local_message_fds_max);
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  std::vector<std::byte> control(fds.empty() ? 0 : CMSG_SPACE(fds.size_bytes()));
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  while (::sendmsg(fd_.get(), &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return system_error("cannot send to a rank on this machine");
  }
  return {};
}

Result<LocalMessage> LocalSocket::receive(Instant deadline) {
  if (!readable(fd_.get(), deadline)) {
    return Error{ErrorCode::timed_out, "a rank on this machine sent nothing in time"};
  }
  LocalMessage received;
  received.bytes.resize(local_message_bytes_max);
  std::vector<std::byte> control(CMSG_SPACE(local_message_fds_max * sizeof(int)));
  iovec part{received.bytes.data(), received.bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t bytes = -1;
  do {
    bytes = ::recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC);
  } while (bytes < 0 && errno == EINTR);
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); bytes >= 0 && header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    std::vector<int> fds((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(fds.data(), CMSG_DATA(header), fds.size() * sizeof(int));
    for (const int fd : fds) received.fds.emplace_back(fd);
  }
  if (bytes <= 0) {
    return Error{ErrorCode::unavailable, "a rank on this machine closed its connection"};
  }
  received.bytes.resize(static_cast<std::size_t>(bytes));
  return received;
}

}  // namespace cais::io
