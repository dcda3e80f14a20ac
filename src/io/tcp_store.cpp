// io/tcp_store.cpp — the client of the key-value store.
#include "io/tcp_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>

#include "io/clock.hpp"
#include "io/poller.hpp"
#include "wire/bytes.hpp"

namespace cais::io {
namespace {

constexpr Duration retry_pause = std::chrono::milliseconds(20);
constexpr Duration set_timeout = std::chrono::seconds(30);

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string request(char kind, std::string_view key, std::string_view value) {
  std::string message(3, kind);
  wire::store_network(reinterpret_cast<std::byte*>(&message[1]),
                      static_cast<std::uint16_t>(key.size()));
  message.append(key).append(value);
  return message;
}

// A port can be served once, so communicators of one process that share a rendezvous share its
// server.
Result<std::shared_ptr<TcpStoreServer>> shared_server(const std::string& host_port,
                                                      const Address& address) {
  static std::mutex mutex;
  static auto* const servers = new std::map<std::string, std::weak_ptr<TcpStoreServer>>;
  const std::lock_guard lock(mutex);
  std::weak_ptr<TcpStoreServer>& known = (*servers)[host_port];
  if (auto server = known.lock()) return server;
  Result<std::unique_ptr<TcpStoreServer>> opened = TcpStoreServer::open(address);
  if (!opened.ok()) {
    servers->erase(host_port);
    return opened.error();
  }
  std::shared_ptr<TcpStoreServer> server = std::move(opened).value();
  known = server;
  return server;
}

// Connects as soon as somebody listens.
Result<Connection> connect(const Address& address, const std::string& host_port, Duration timeout) {
  const Address any = address.family() == AF_INET6 ? Address::parse("[::]:0").value() : Address();
  const Instant deadline = now() + timeout;
  while (true) {
    Result<Connection> connection = connect_to(any, address, deadline);
    if (connection.ok()) return connection;
    if (now() + retry_pause >= deadline) {
      return Error{ErrorCode::timed_out,
                   fmt::format("nobody listens at the rendezvous {} after {:.1f} s ({}); rank 0 "
                               "serves it: is it running, and is this its address?",
                               host_port, seconds(timeout), connection.error().message)};
    }
    std::this_thread::sleep_for(retry_pause);
  }
}

Error not_a_store(const std::string& host_port) {
  return Error{
      ErrorCode::unavailable,
      fmt::format("what answers at {} is no rendezvous of CAIS, or is full; choose another "
                  "port, the same at all ranks",
                  host_port)};
}

}  // namespace

Result<std::unique_ptr<TcpStore>> TcpStore::open(std::string_view host_port, bool serve,
                                                 Duration timeout) {
  std::string name(host_port);
  const Result<Address> address = Address::resolve(host_port);
  if (!address.ok()) return address.error();
  if (address->port() == 0) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the rendezvous '{}' has no port; write HOST:PORT", name)};
  }
  std::shared_ptr<TcpStoreServer> server;
  if (serve) {
    auto shared = shared_server(name, *address);
    if (!shared.ok()) return shared.error();
    server = std::move(shared).value();
  }
  const Instant deadline = now() + timeout;
  Result<Connection> connection = connect(*address, name, timeout);
  if (!connection.ok()) return connection.error();
  std::unique_ptr<TcpStore> store(
      new TcpStore(std::move(server), std::move(connection).value(), name));
  const Result<std::string> hello = store->ask(std::string(store_hello), deadline);
  if (!hello.ok() || *hello != store_hello) return not_a_store(name);
  return store;
}

Result<std::string> TcpStore::receive(Instant deadline) {
  std::string answer;
  while (!connection_.receive(answer)) {
    if (connection_.state() != Connection::State::open) {
      return Error{
          ErrorCode::unavailable,
          fmt::format("the rendezvous {} has ended: rank 0 is gone{}", host_port_,
                      connection_.reason().empty() ? "" : " (" + connection_.reason() + ")")};
    }
    const Duration left = deadline - now();
    if (left <= Duration(0)) return Error{ErrorCode::timed_out, {}};
    const auto events = static_cast<short>(POLLIN | (connection_.wants_write() ? POLLOUT : 0));
    pollfd waiting{connection_.fd(), events, 0};
    wait_any({&waiting, 1}, left);
    connection_.flush();
  }
  return answer;
}

Result<std::string> TcpStore::ask(const std::string& message, Instant deadline) {
  const std::lock_guard lock(mutex_);
  connection_.send(message);
  return receive(deadline);
}

Result<void> TcpStore::set(std::string_view key, std::string_view value) {
  if (key.size() > store_key_bytes_max || value.size() > store_value_bytes_max) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("a key of {} and a value of {} bytes are too long for the rendezvous; "
                             "it takes {} and {}",
                             key.size(), value.size(), store_key_bytes_max, store_value_bytes_max)};
  }
  Result<std::string> answer = ask(request('s', key, value), now() + set_timeout);
  if (!answer.ok()) {
    if (answer.error().code != ErrorCode::timed_out) return answer.error();
    return Error{ErrorCode::timed_out,
                 fmt::format("the rendezvous {} did not take the key '{}' within {:.0f} s",
                             host_port_, key, seconds(set_timeout))};
  }
  if (answer->starts_with('e')) return Error{ErrorCode::invalid_argument, answer->substr(1)};
  return {};
}

Result<std::string> TcpStore::get(std::string_view key, Duration timeout) {
  Result<std::string> answer = ask(request('g', key, {}), now() + timeout);
  if (!answer.ok()) {
    if (answer.error().code != ErrorCode::timed_out) return answer.error();
    return Error{
        ErrorCode::timed_out,
        fmt::format("no rank has set the key '{}' at the rendezvous {} within {:.1f} s; is "
                    "every rank running?",
                    key, host_port_, seconds(timeout))};
  }
  return answer->substr(1);
}

}  // namespace cais::io
