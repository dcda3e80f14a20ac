// io/tcp_store_server.cpp — answers the clients of the key-value store.
#include "io/tcp_store_server.hpp"

#include <array>
#include <utility>

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
  if (connection.state() != Connection::State::open) return;
  const std::uint64_t token = next_token_++;
  if (!sessions_.enter(token)) return;
  if (!events_.add(connection.fd(), token).ok()) return sessions_.leave(token);
  connections_.emplace(token, std::move(connection));
}

void TcpStoreServer::attend(std::uint64_t token) {
  const auto at = connections_.find(token);
  if (at == connections_.end()) return;
  Connection& connection = at->second;
  connection.flush();
  std::string message;
  std::vector<StoreSessions::Answer> answers;
  while (connection.receive(message)) {
    const bool good = sessions_.receive(token, message, answers);
    send(answers);
    if (!good) return drop(token);
    answers.clear();
  }
  if (connection.state() != Connection::State::open) return drop(token);
  events_.want_write(connection.fd(), token, connection.wants_write());
}

void TcpStoreServer::send(const std::vector<StoreSessions::Answer>& answers) {
  for (const StoreSessions::Answer& answer : answers) {
    Connection& connection = connections_.at(answer.client);
    connection.send(answer.message);
    events_.want_write(connection.fd(), answer.client, connection.wants_write());
  }
}

void TcpStoreServer::drop(std::uint64_t token) {
  const auto at = connections_.find(token);
  events_.remove(at->second.fd());
  connections_.erase(at);
  sessions_.leave(token);
}

}  // namespace cais::io
