// io/store_sessions.hpp — the server's side of the key-value store as a pure state machine: what
// clients have said, and what each is answered. No socket.
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

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/control/connection.hpp"

namespace cais::io {

inline constexpr std::string_view store_hello = "cais-store 1";
inline constexpr std::size_t store_key_bytes_max = 1024;
inline constexpr std::size_t store_value_bytes_max = 60 << 10;
inline constexpr std::size_t store_keys_max = 65'536;
inline constexpr std::size_t store_bytes_max = std::size_t{256} << 20;
inline constexpr std::size_t store_clients_max = 1024;
static_assert(3 + store_key_bytes_max + store_value_bytes_max <= message_bytes_max,
              "a request is one message");

class StoreSessions {
 public:
  struct Answer {
    std::uint64_t client;
    std::string message;
  };

  /// A client of that number may speak now. False: there are store_clients_max already.
  bool enter(std::uint64_t client);
  void leave(std::uint64_t client) { clients_.erase(client); }

  /// Takes one message of a client that has entered. What is to be sent for it, also to others,
  /// goes to the end of `answers`. False: the client does not speak the store's language and has
  /// left.
  bool receive(std::uint64_t client, std::string_view message, std::vector<Answer>& answers);

  std::size_t keys() const { return values_.size(); }

 private:
  struct Client {
    bool greeted = false;
    bool waiting = false;  // for `wanted`
    std::string wanted;
  };

  bool take(std::uint64_t token, Client& client, std::string_view message,
            std::vector<Answer>& answers);
  std::string set(std::string_view key, std::string_view value, std::vector<Answer>& answers);

  std::map<std::uint64_t, Client> clients_;
  std::map<std::string, std::string, std::less<>> values_;
  std::size_t bytes_ = 0;  // of all keys and values
};

}  // namespace cais::io
