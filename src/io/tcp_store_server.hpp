// io/tcp_store_server.hpp — the process's end of the key-value store that others connect to, and
// the language that both ends speak.
//
//   client            server
//   hello             hello           the first message each way; any other ends the connection
//   's' key value     'k'             the key is set now
//                     'e' words       it is not: it was set before, or the store is full
//   'g' key           'v' value       once the key is there, however long that takes
//
// A key stands after its length in two bytes, network order; a value takes the rest of the message.
// A client has one request under way: one that sends more before the answer is dropped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.hpp"
#include "io/address.hpp"
#include "io/control/connection.hpp"
#include "io/poller.hpp"

namespace cais::io {

inline constexpr std::string_view store_hello = "cais-store 1";
inline constexpr std::size_t store_key_bytes_max = 1024;
inline constexpr std::size_t store_value_bytes_max = 60 << 10;
inline constexpr std::size_t store_keys_max = 65'536;
inline constexpr std::size_t store_bytes_max = std::size_t{256} << 20;
inline constexpr std::size_t store_clients_max = 1024;
static_assert(3 + store_key_bytes_max + store_value_bytes_max <= message_bytes_max,
              "a request is one message");

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
  struct Client {
    Connection connection;
    bool greeted = false;
    bool waiting = false;  // for `wanted`
    std::string wanted;
  };

  TcpStoreServer(Listener listener, EventSet events, Waker waker);
  void serve();
  void accept();
  void attend(std::uint64_t token);
  bool handle(Client& client, std::string_view message);
  std::string set(std::string_view key, std::string_view value);
  void answer_waiting(const std::string& key, const std::string& value);

  Listener listener_;
  EventSet events_;
  Waker waker_;
  std::map<std::uint64_t, Client> clients_;  // by the token of their events
  std::uint64_t next_token_;
  std::map<std::string, std::string, std::less<>> values_;
  std::size_t bytes_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace cais::io
