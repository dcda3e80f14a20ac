#include "runtime/udp/switch_worker.hpp"

#include <algorithm>
#include <future>

namespace cais::runtime {
namespace {

constexpr std::size_t outbox_packets = 4096;
constexpr std::size_t pool_buffers = 2048;  // 128 MB (S10), touched only as far as it is used
// With fewer free buffers than this the switch copies what it keeps.
constexpr std::size_t pool_reserve = 64;
// Ports of whoever is in no session here and asks whether there is one (P16); taken in turns.
constexpr std::uint32_t stranger_ports = 256;
constexpr Duration idle_wait = std::chrono::seconds(10);
// Between the packets of small collectives a worker does not sleep: a wake-up would cost as much
// as they do. Where much comes at once it is worth one.
constexpr Duration spin = std::chrono::microseconds(200);
constexpr std::size_t spin_bytes_max = 16 * 1024;

}  // namespace

SwitchWorker::SwitchWorker(std::unique_ptr<io::DatagramSocket> socket, io::Waker waker,
                           OnMismatch on_mismatch, const telemetry::Log& log)
    : pool_(pool_buffers, io::receive_buffer_bytes),
      socket_(std::move(socket)),
      outbox_(outbox_packets),
      on_mismatch_(std::move(on_mismatch)),
      log_(log),
      addresses_(stranger_ports),
      port_users_(stranger_ports),
      waker_(std::move(waker)),
      thread_([this] { run(); }) {}

SwitchWorker::~SwitchWorker() {
  stopping_ = true;
  waker_.wake();
  thread_.join();
}

void SwitchWorker::call(const std::function<void()>& command) {
  std::promise<void> done;
  {
    const std::scoped_lock lock(commands_mutex_);
    commands_.push_back([&] {
      command();
      done.set_value();
    });
  }
  commands_due_ = true;
  waker_.wake();
  done.get_future().wait();
}

Result<void> SwitchWorker::open(const switching::SessionConfig& config,
                                std::span<const io::Address> ranks) {
  Result<void> result;
  call([&] {
    result = switch_.open(config);
    if (!result) return;
    std::vector<std::uint32_t>& ports = session_ports_[config.session.value];
    for (std::size_t rank = 0; rank < ranks.size() && result.ok(); ++rank) {
      ports.push_back(port_of(ranks[rank]));
      result = switch_.bind(config.session, Rank(static_cast<std::uint16_t>(rank)),
                            switching::Port(ports.back()));
    }
  });
  if (!result) close(config.session);
  return result;
}

Result<void> SwitchWorker::define(SessionId session, const wire::CommDescriptor& descriptor) {
  Result<void> result;
  call([&] { result = switch_.define(session, descriptor); });
  return result;
}

void SwitchWorker::close(SessionId session) {
  call([&] {
    switch_.close(session);
    for (const std::uint32_t port : session_ports_[session.value]) release_port(port);
    session_ports_.erase(session.value);
  });
}

SwitchWorker::Snapshot SwitchWorker::snapshot() {
  Snapshot result;
  call([&] { result = Snapshot{switch_.counters(), switch_.slots_in_use()}; });
  return result;
}

std::uint32_t SwitchWorker::port_of(const io::Address& address) {
  if (const auto found = ports_.find(address); found != ports_.end()) {
    ++port_users_[found->second];
    return found->second;
  }
  if (free_ports_.empty()) {
    free_ports_.push_back(static_cast<std::uint32_t>(addresses_.size()));
    addresses_.emplace_back();
    port_users_.push_back(0);
  }
  const std::uint32_t port = free_ports_.back();
  free_ports_.pop_back();
  addresses_[port] = address;
  port_users_[port] = 1;
  ports_[address] = port;
  return port;
}

/// No rank is bound to such a port, so that nothing but a question is answered there.
std::uint32_t SwitchWorker::stranger(const io::Address& address) {
  next_stranger_ = (next_stranger_ + 1) % stranger_ports;
  addresses_[next_stranger_] = address;
  return next_stranger_;
}

void SwitchWorker::release_port(std::uint32_t port) {
  if (--port_users_[port] != 0) return;
  ports_.erase(addresses_[port]);
  free_ports_.push_back(port);
}

void SwitchWorker::run() {
  while (!stopping_) {
    // A command may take away what the outbox points at.
    if (outbox_.empty() && commands_due_.exchange(false)) run_commands();
    if (turn()) continue;
    const bool blocked = !outbox_.empty();
    const pollfd socket{socket_->fd(), static_cast<short>(blocked ? POLLOUT : POLLIN), 0};
    if (received_bytes_ <= spin_bytes_max && io::spin_for(socket, spin)) continue;
    std::array<pollfd, 2> fds{socket, pollfd{blocked ? -1 : waker_.fd(), POLLIN, 0}};
    io::wait_any(fds, idle_wait);
  }
  run_commands();  // whoever still waits for one
}

void SwitchWorker::run_commands() {
  waker_.clear();
  std::deque<std::function<void()>> commands;
  {
    const std::scoped_lock lock(commands_mutex_);
    commands.swap(commands_);
  }
  for (const std::function<void()>& command : commands) command();
}

bool SwitchWorker::turn() {
  if (!outbox_.flush(*socket_, addresses_)) return false;
  const std::size_t count = socket_->receive(pool_, arrivals_);
  if (count != 0) received_bytes_ = 0;
  for (io::Arrival& arrival : std::span(arrivals_).first(count)) {
    received_bytes_ += arrival.train.bytes.size();
    take(arrival);
    arrival.train.owner = {};
  }
  bool moved = count != 0;
  switching::Transmit transmit;
  do {
    while (!outbox_.full() && switch_.poll_transmit(transmit)) {
      moved = true;
      for (const switching::Port port : transmit.ports) {
        outbox_.add(port.value, transmit.header, transmit.payload, {});
      }
    }
    if (outbox_.empty()) break;
  } while (outbox_.flush(*socket_, addresses_));
  take_events();
  return moved;
}

void SwitchWorker::take(const io::Arrival& arrival) {
  const auto found = ports_.find(arrival.from);
  const switching::Port port(found == ports_.end() ? stranger(arrival.from) : found->second);
  const bool keep = pool_.free_count() >= pool_reserve;
  std::span<const std::byte> rest = arrival.train.bytes;
  while (!rest.empty()) {
    const auto packet = rest.first(std::min<std::size_t>(arrival.packet_bytes, rest.size()));
    rest = rest.subspan(packet.size());
    switch_.receive(port, Packet{packet, keep ? arrival.train.owner : BufferRef()});
  }
}

void SwitchWorker::take_events() {
  switching::Event event;
  while (switch_.poll_event(event)) {
    if (const auto* mismatch = std::get_if<switching::MismatchEvent>(&event)) {
      on_mismatch_(*mismatch);
    } else if (const auto* violation = std::get_if<switching::ViolationEvent>(&event)) {
      log_.warn(telemetry::Subsystem::switching,
                "session {}: rank {} broke the window of lane {} at seq {}",
                violation->session.value, violation->rank.value, violation->lane.value,
                violation->seq.value);
    }
  }
}

}  // namespace cais::runtime
