#include "io/store_sessions.hpp"

#include "wire/bytes.hpp"

namespace cais::io {

bool StoreSessions::enter(std::uint64_t client) {
  if (clients_.size() >= store_clients_max) return false;
  return clients_.try_emplace(client).second;
}

bool StoreSessions::receive(std::uint64_t client, std::string_view message,
                            std::vector<Answer>& answers) {
  const auto at = clients_.find(client);
  if (at == clients_.end()) return false;
  if (take(client, at->second, message, answers)) return true;
  clients_.erase(at);
  return false;
}

bool StoreSessions::take(std::uint64_t token, Client& client, std::string_view message,
                         std::vector<Answer>& answers) {
  if (!client.greeted) {
    client.greeted = message == store_hello;
    if (client.greeted) answers.push_back({token, std::string(store_hello)});
    return client.greeted;
  }
  if (client.waiting || message.size() < 3) return false;
  const char request = message[0];
  const std::size_t key_bytes =
      wire::load_network<std::uint16_t>(reinterpret_cast<const std::byte*>(message.data() + 1));
  message.remove_prefix(3);
  if (key_bytes > message.size() || key_bytes > store_key_bytes_max) return false;
  const std::string_view key = message.substr(0, key_bytes);
  const std::string_view value = message.substr(key_bytes);
  if (request == 's' && value.size() <= store_value_bytes_max) {
    answers.push_back({token, set(key, value, answers)});
    return true;
  }
  if (request != 'g' || !value.empty()) return false;
  if (const auto found = values_.find(key); found != values_.end()) {
    answers.push_back({token, "v" + found->second});
  } else {
    client.waiting = true;
    client.wanted = key;
  }
  return true;
}

// The answer to the one who sets; before it come those to the ones who wait for the key.
std::string StoreSessions::set(std::string_view key, std::string_view value,
                               std::vector<Answer>& answers) {
  if (values_.contains(key)) {
    return "ethe key '" + std::string(key) +
           "' was set before; communicators that share a rendezvous need names of their own";
  }
  if (values_.size() >= store_keys_max || bytes_ + key.size() + value.size() > store_bytes_max) {
    return "ethe store is full";
  }
  bytes_ += key.size() + value.size();
  values_.emplace(key, value);
  for (auto& [token, client] : clients_) {
    if (!client.waiting || client.wanted != key) continue;
    client.waiting = false;
    answers.push_back({token, "v" + std::string(value)});
  }
  return "k";
}

}  // namespace cais::io
