// io/shm/local_socket.hpp — messages that carry file descriptors between processes of one machine:
// sequenced-packet Unix sockets with abstract names, which leave nothing behind in any file system.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "io/fd.hpp"

namespace cais::io {

inline constexpr std::size_t local_message_bytes_max = 32 * 1024;
inline constexpr std::size_t local_message_fds_max = 253;  // the kernel's SCM_MAX_FD

struct LocalMessage {
  std::vector<std::byte> bytes;
  std::vector<Fd> fds;
};

class LocalSocket {
 public:
  LocalSocket() = default;
  /// Listens under a random abstract name, which `name()` tells.
  static Result<LocalSocket> listen();
  /// unavailable: nobody listens there.
  static Result<LocalSocket> connect(const std::string& name);

  /// The next process of the same user that connects; others are turned away. Nothing when
  /// `deadline` has passed.
  Result<std::optional<LocalSocket>> accept(Instant deadline);
  Result<void> send(std::span<const std::byte> bytes, std::span<const int> fds);
  /// timed_out, or unavailable when the peer has closed.
  Result<LocalMessage> receive(Instant deadline);

  const std::string& name() const { return name_; }

 private:
  explicit LocalSocket(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
  std::string name_;
};

}  // namespace cais::io
