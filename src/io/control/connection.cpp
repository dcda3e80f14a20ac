#include "io/control/connection.hpp"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "io/clock.hpp"
#include "io/poller.hpp"
#include "wire/bytes.hpp"

namespace cais::io {
namespace {

constexpr std::size_t length_bytes = 4;

void set_option(int fd, int level, int name, int value) {
  (void)::setsockopt(fd, level, name, &value, sizeof(value));
}

// A peer that vanishes (power, cable) is found out within about four seconds: while there is
// something to deliver by TCP_USER_TIMEOUT, otherwise by keep-alive probes.
void watch_over(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 4000);
}

std::string errno_words() { return system_error("").message.substr(2); }

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Connection::Connection(Fd fd) : fd_(std::move(fd)), state_(State::open) { watch_over(fd_.get()); }

void Connection::break_with(std::string reason) {
  if (state_ != State::open) return;
  state_ = State::broken;
  reason_ = std::move(reason);
  unsent_.clear();
}

void Connection::send(std::string_view message) {
  CAIS_CHECK(message.size() <= message_bytes_max);
  if (state_ == State::broken || !fd_) return;
  std::array<std::byte, length_bytes> length;
  wire::store_network(length.data(), static_cast<std::uint32_t>(message.size()));
  unsent_.append(reinterpret_cast<const char*>(length.data()), length.size());
  unsent_.append(message);
  if (unsent_.size() > unsent_bytes_max) return break_with("it takes no more messages");
  flush();
}

void Connection::flush() {
  std::size_t sent = 0;
  while (sent < unsent_.size()) {
    const ssize_t count = ::send(fd_.get(), unsent_.data() + sent, unsent_.size() - sent,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
      if (would_block()) break;
      return break_with(errno_words());
    }
    sent += static_cast<std::size_t>(count);
  }
  unsent_.erase(0, sent);
}

void Connection::read_available() {
  char bytes[16384];
  // Stop when there is at least one message of the greatest length: the rest waits in the kernel.
  while (state_ == State::open && received_.size() - taken_ < message_bytes_max + length_bytes) {
    const ssize_t count = ::recv(fd_.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (count < 0 && would_block()) return;
    if (count < 0) return break_with(errno_words());
    if (count == 0) {
      state_ = State::closed;
      return;
    }
    received_.append(bytes, static_cast<std::size_t>(count));
  }
}

bool Connection::receive(std::string& message) {
  read_available();
  const std::size_t available = received_.size() - taken_;
  if (available < length_bytes) return false;
  const std::size_t length =
      wire::load_network<std::uint32_t>(reinterpret_cast<const std::byte*>(&received_[taken_]));
  if (length > message_bytes_max) {
    received_.clear();
    taken_ = 0;
    break_with("it does not speak our language");
    return false;
  }
  if (available < length_bytes + length) return false;
  message.assign(received_, taken_ + length_bytes, length);
  taken_ += length_bytes + length;
  if (taken_ == received_.size() || taken_ > message_bytes_max) {
    received_.erase(0, taken_);
    taken_ = 0;
  }
  return true;
}

Result<Listener> Listener::open(const Address& local) {
  constexpr int backlog = 128;
  Fd fd(::socket(local.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return system_error("cannot make a TCP socket");
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);  // connections that linger keep no port
  if (::bind(fd.get(), local.raw(), local.length()) != 0 || ::listen(fd.get(), backlog) != 0) {
    return system_error("cannot listen on " + local.to_string());
  }
  sockaddr_in6 bound{};
  socklen_t length = sizeof(bound);
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    return system_error("cannot ask for the address of a TCP socket");
  }
  return Listener(std::move(fd), Address::from(reinterpret_cast<const sockaddr*>(&bound)));
}

Connection Listener::accept() {
  Fd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  return fd ? Connection(std::move(fd)) : Connection();
}

Result<Connection> connect_to(const Address& local, const Address& peer, Instant deadline) {
  Fd fd(::socket(peer.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return system_error("cannot make a TCP socket");
  const Address source = local.with_port(0);
  const std::string what = "cannot connect from " + local.host() + " to " + peer.to_string();
  if (::bind(fd.get(), source.raw(), source.length()) != 0) return system_error(what);
  if (::connect(fd.get(), peer.raw(), peer.length()) != 0 && errno != EINPROGRESS) {
    return system_error(what);
  }
  pollfd waiting{fd.get(), POLLOUT, 0};
  wait_any({&waiting, 1}, deadline - now());
  if (waiting.revents == 0) return Error{ErrorCode::timed_out, what + ": it does not answer"};
  int error = 0;
  socklen_t length = sizeof(error);
  (void)::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) {
    errno = error;
    return system_error(what);
  }
  return Connection(std::move(fd));
}

}  // namespace cais::io
