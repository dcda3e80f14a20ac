// io/tcp_store_server.hpp — the process's end of the key-value store that others connect to: the
// sockets and the thread around StoreSessions.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "io/address.hpp"
#include "io/control/connection.hpp"
#include "io/poller.hpp"
#include "io/store_sessions.hpp"

namespace cais::io {

/// Serves from its own thread until it is destroyed.
class TcpStoreServer {
 public:
  /// Port 0: one that the kernel chooses. unavailable: the port is taken.
  static Result<std::unique_ptr<TcpStoreServer>> open(const Address& local);
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;
  ~TcpStoreServer();

  Address address() const { return listener_.address(); }

 private:
  TcpStoreServer(Listener listener, EventSet events, Waker waker);
  void serve();
  void accept();
  void attend(std::uint64_t token);
  void send(const std::vector<StoreSessions::Answer>& answers);
  void drop(std::uint64_t token);

  Listener listener_;
  EventSet events_;
  Waker waker_;
  std::map<std::uint64_t, Connection> connections_;  // by the token of their events
  std::uint64_t next_token_;
  StoreSessions sessions_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace cais::io
