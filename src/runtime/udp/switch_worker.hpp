// runtime/udp/switch_worker.hpp — one core of a cais-switch: a socket, a Switch for the lanes that
// meet there, and the thread that feeds one from the other. Workers share nothing.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/buffer.hpp"
#include "core/switching/switch.hpp"
#include "io/poller.hpp"
#include "io/udp/datagram_socket.hpp"
#include "io/udp/outbox.hpp"
#include "telemetry/log.hpp"

namespace cais::runtime {

class SwitchWorker {
 public:
  /// Called by the worker's thread; must not call the worker back.
  using OnMismatch = std::function<void(const switching::MismatchEvent&)>;
  struct Snapshot {
    switching::Counters counters;
    std::size_t slots_in_use = 0;
  };

  SwitchWorker(std::unique_ptr<io::DatagramSocket> socket, io::Waker waker, OnMismatch on_mismatch,
               const telemetry::Log& log);
  ~SwitchWorker();

  std::uint16_t port() const { return socket_->address().port(); }

  // From any thread; each returns once the worker's thread has done it.
  /// Opens the session and binds each rank to the address that it speaks from.
  Result<void> open(const switching::SessionConfig& config, std::span<const io::Address> ranks);
  Result<void> define(SessionId session, const wire::CommDescriptor& descriptor);
  void close(SessionId session);
  Snapshot snapshot();

 private:
  struct AddressHash {
    std::size_t operator()(const io::Address& address) const { return address.hash(); }
  };
  static constexpr std::size_t arrivals_max = 16;

  void call(const std::function<void()>& command);
  void run();
  void run_commands();
  bool turn();
  void take(const io::Arrival& arrival);
  void take_events();
  std::uint32_t port_of(const io::Address& address);
  void release_port(std::uint32_t port);
  std::uint32_t stranger(const io::Address& address);

  BufferPool pool_;
  std::unique_ptr<io::DatagramSocket> socket_;
  switching::Switch switch_;
  io::Outbox outbox_;
  std::array<io::Arrival, arrivals_max> arrivals_;
  std::size_t received_bytes_ = 0;  // when last anything came
  OnMismatch on_mismatch_;
  telemetry::Log log_;

  // A port (switching::Port) is an index into `addresses_`, shared by the sessions that use it.
  std::vector<io::Address> addresses_;
  std::vector<std::uint32_t> port_users_;
  std::uint32_t next_stranger_ = 0;
  std::vector<std::uint32_t> free_ports_;
  std::unordered_map<io::Address, std::uint32_t, AddressHash> ports_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> session_ports_;

  std::mutex commands_mutex_;
  std::deque<std::function<void()>> commands_;
  io::Waker waker_;
  std::atomic<bool> commands_due_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace cais::runtime
