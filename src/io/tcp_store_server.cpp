// io/tcp_store_server.cpp — answers the clients of the key-value store.
#include "io/tcp_store_server.hpp"

#include <array>
#include <utility>

#include "wire/bytes.hpp"

namespace cais::io {
namespace {

constexpr std::uint64_t listener_token = 0;
constexpr std::uint64_t waker_token = 1;
constexpr std::uint64_t client_token_first = 2;

}  // namespace

Result<std::unique_ptr<TcpStoreServer>> TcpStoreServer::open(const Address& local) {
  Result<Listener> listener = Listener::open(local);
  if (!listener.ok()) {
    return Error{ErrorCode::unavailable,
                 listener.error().message +
                     "; the rendezvous needs a port that nobody else uses on this host: choose "
                     "another, the same at all ranks"};
  }
  Result<EventSet> events = EventSet::open();
  if (!events.ok()) return events.error();
  Result<Waker> waker = Waker::open();
  if (!waker.ok()) return waker.error();
  if (Result<void> added = events->add(listener->fd(), listener_token); !added.ok()) {
    return added.error();
  }
  if (Result<void> added = events->add(waker->fd(), waker_token); !added.ok()) {
    return added.error();
  }
  return std::unique_ptr<TcpStoreServer>(new TcpStoreServer(
      std::move(listener).value(), std::move(events).value(), std::move(waker).value()));
}

TcpStoreServer::TcpStoreServer(Listener listener, EventSet events, Waker waker)
    : listener_(std::move(listener)),
      events_(std::move(events)),
      waker_(std::move(waker)),
      next_token_(client_token_first) {
  thread_ = std::thread([this] { serve(); });
}

TcpStoreServer::~TcpStoreServer() {
  stop_ = true;
  waker_.wake();
  thread_.join();
}

void TcpStoreServer::serve() {
  std::array<EventSet::Ready, 64> ready{};
  while (!stop_) {
    pollfd waiting{events_.fd(), POLLIN, 0};
    wait_any({&waiting, 1}, Duration(-1));
    const std::size_t count = events_.poll(ready);
    for (std::size_t i = 0; i < count; ++i) {
      if (ready[i].token == listener_token) {
        accept();
      } else if (ready[i].token != waker_token) {
        attend(ready[i].token);
      }
    }
  }
}

// One client more than there may be is let in and out again: it learns that it is not served.
void TcpStoreServer::accept() {
  Connection connection = listener_.accept();
  if (connection.state() != Connection::State::open || clients_.size() >= store_clients_max) return;
  const std::uint64_t token = next_token_++;
  if (!events_.add(connection.fd(), token).ok()) return;
  clients_.emplace(token, Client{.connection = std::move(connection), .wanted = {}});
}

void TcpStoreServer::attend(std::uint64_t token) {
  const auto at = clients_.find(token);
  if (at == clients_.end()) return;
  Client& client = at->second;
  client.connection.flush();
  bool good = true;
  std::string message;
  while (good && client.connection.receive(message)) good = handle(client, message);
  if (!good || client.connection.state() != Connection::State::open) {
    events_.remove(client.connection.fd());
    clients_.erase(at);
    return;
  }
  events_.want_write(client.connection.fd(), token, client.connection.wants_write());
}

// False when the client does not speak the store's language.
bool TcpStoreServer::handle(Client& client, std::string_view message) {
  if (!client.greeted) {
    client.greeted = message == store_hello;
    if (client.greeted) client.connection.send(store_hello);
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
    client.connection.send(set(key, value));
    return true;
  }
  if (request != 'g' || !value.empty()) return false;
  if (const auto found = values_.find(key); found != values_.end()) {
    client.connection.send("v" + found->second);
  } else {
    client.waiting = true;
    client.wanted = key;
  }
  return true;
}

// The answer to the one who sets.
std::string TcpStoreServer::set(std::string_view key, std::string_view value) {
  if (values_.contains(key)) {
    return "ethe key '" + std::string(key) +
           "' was set before; communicators that share a rendezvous need names of their own";
  }
  if (values_.size() >= store_keys_max || bytes_ + key.size() + value.size() > store_bytes_max) {
    return "ethe store is full";
  }
  bytes_ += key.size() + value.size();
  const auto placed = values_.emplace(key, value).first;
  answer_waiting(placed->first, placed->second);
  return "k";
}

void TcpStoreServer::answer_waiting(const std::string& key, const std::string& value) {
  for (auto& [token, client] : clients_) {
    if (!client.waiting || client.wanted != key) continue;
    client.waiting = false;
    client.connection.send("v" + value);
    events_.want_write(client.connection.fd(), token, client.connection.wants_write());
  }
}

}  // namespace cais::io
