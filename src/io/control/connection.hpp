// io/control/connection.hpp — a TCP connection that carries short messages between processes that
// watch over each other: it breaks soon when the other side dies, also without a word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "io/address.hpp"
#include "io/fd.hpp"

namespace cais::io {

inline constexpr std::size_t message_bytes_max = 64u << 10;
inline constexpr std::size_t unsent_bytes_max = 16u << 20;

/// Messages in order, each at most message_bytes_max; never blocks. On the wire: the length in four
/// bytes, network order, then the bytes.
class Connection {
 public:
  enum class State : std::uint8_t { open, closed, broken };  // closed: the other side has ended

  Connection() = default;
  explicit Connection(Fd fd);

  /// Queues a message and writes what can be written. A receiver that takes none of
  /// unsent_bytes_max breaks the connection.
  void send(std::string_view message);
  void flush();
  bool wants_write() const { return !unsent_.empty(); }

  /// The next message that has come, or false. `state()` tells whether more may come.
  bool receive(std::string& message);
  State state() const { return state_; }
  /// Why it is broken, in errno's words.
  const std::string& reason() const { return reason_; }

  int fd() const { return fd_.get(); }

 private:
  void read_available();
  void break_with(std::string reason);

  Fd fd_;
  State state_ = State::closed;
  std::string reason_;
  std::string unsent_;
  std::string received_;
  std::size_t taken_ = 0;  // bytes of `received_` that were given out
};

/// Waits for connections on a port that the kernel chooses.
class Listener {
 public:
  static Result<Listener> open(const Address& local);
  Address address() const { return address_; }
  int fd() const { return fd_.get(); }
  /// A connection that has come, or one that is closed.
  Connection accept();

 private:
  Listener(Fd fd, const Address& address) : fd_(std::move(fd)), address_(address) {}
  Fd fd_;
  Address address_;
};

/// Connects from the interface of `local`; gives up at `deadline`.
Result<Connection> connect_to(const Address& local, const Address& peer, Instant deadline);

}  // namespace cais::io
