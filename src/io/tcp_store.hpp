// io/tcp_store.hpp — a small key-value store over TCP, by which the ranks of C programs and of
// cais_perf find each other: rank 0 serves at HOST:PORT, all others connect.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "io/control/connection.hpp"
#include "io/tcp_store_server.hpp"

namespace cais::io {

/// A client of the store, and in the process that serves, a share in the server. Thread-safe; a
/// `get` that waits keeps other calls waiting.
class TcpStore {
 public:
  /// Connects to `host_port`, again and again until `timeout`: the server may come later. With
  /// `serve`, serves there first; stores of one process that serve the same `host_port` share one
  /// server, which ends with the last of them.
  /// Errors: invalid_argument (no HOST:PORT), unavailable (the port is taken, or something else
  /// answers there), timed_out (nobody listens).
  static Result<std::unique_ptr<TcpStore>> open(std::string_view host_port, bool serve,
                                                Duration timeout);

  /// invalid_argument: too long, or set before. unavailable: the server has ended.
  Result<void> set(std::string_view key, std::string_view value);
  /// Waits for the key. timed_out names it; after that the store is of no more use.
  Result<std::string> get(std::string_view key, Duration timeout);

 private:
  TcpStore(std::shared_ptr<TcpStoreServer> server, Connection connection, std::string host_port)
      : server_(std::move(server)),
        connection_(std::move(connection)),
        host_port_(std::move(host_port)) {}
  Result<std::string> ask(const std::string& request, Instant deadline);
  Result<std::string> receive(Instant deadline);

  std::shared_ptr<TcpStoreServer> server_;
  std::mutex mutex_;
  Connection connection_;
  std::string host_port_;
};

}  // namespace cais::io
