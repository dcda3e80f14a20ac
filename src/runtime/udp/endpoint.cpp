#include "runtime/udp/endpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "io/clock.hpp"
#include "wire/header.hpp"

namespace cais::runtime {
namespace {

constexpr std::size_t outbox_packets = 1024;
constexpr std::size_t pool_buffers = 256;
// With fewer free buffers than this, packets go to the switch without their buffer: it copies what
// it keeps, and the socket can always receive.
constexpr std::size_t pool_reserve = 64;
constexpr std::size_t kind_offset = 13;  // of Header::kind (wire/header.hpp)
constexpr std::uint32_t nobody = ~std::uint32_t{0};

static_assert(pool_reserve > 2 * 8, "a full receive and the own lane's buffer fit the reserve");

bool is_for_switch(std::span<const std::byte> packet) {
  if (packet.size() < wire::header_bytes) return false;
  const auto kind = static_cast<wire::Kind>(packet[kind_offset]);
  return kind == wire::Kind::contribution || kind == wire::Kind::want;
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::make(const EndpointConfig& config,
                                                 std::unique_ptr<io::DatagramSocket> socket) {
  auto endpoint = std::unique_ptr<Endpoint>(new Endpoint(config, std::move(socket)));
  if (!config.embeds_switch) return endpoint;
  const agent::Config& agent = config.agent;
  switching::SessionConfig session{};
  session.session = agent.session;
  session.epoch = agent.epoch;
  session.ranks = agent.ranks;
  session.lanes = agent.lanes;
  for (std::size_t lane = 0; lane < agent.lanes; ++lane) {
    if (config.lane_servers[lane] == agent.rank.value) {
      session.lanes_served |= std::uint64_t{1} << lane;
    }
  }
  session.window_fragments = agent.window_fragments;
  session.payload_bytes_max = config.payload_bytes_max;
  session.keys = agent.keys;
  switching::Switch& own = endpoint->switch_.emplace();
  if (Result<void> opened = own.open(session); !opened) return opened.error();
  for (std::uint16_t rank = 0; rank < agent.ranks; ++rank) {
    if (Result<void> bound = own.bind(session.session, Rank(rank), switching::Port(rank)); !bound) {
      return bound.error();
    }
  }
  return endpoint;
}

Endpoint::Endpoint(const EndpointConfig& config, std::unique_ptr<io::DatagramSocket> socket)
    : config_(config),
      session_(config.agent.session),
      pool_(pool_buffers, io::receive_buffer_bytes),
      socket_(std::move(socket)),
      agent_(config.agent),
      outbox_(outbox_packets, config.embeds_switch ? config.agent.rank.value + 1u : 0),
      scratch_(wire::header_bytes + config.payload_bytes_max) {}

void Endpoint::submit(const agent::Submit& op) {
  CAIS_CHECK(ready());
  agent_.submit(op);
}

Result<void> Endpoint::define(const wire::CommDescriptor& descriptor) {
  return switch_->define(session_, descriptor);
}

pollfd Endpoint::waits_for() const {
  const bool blocked = !outbox_.empty();
  return pollfd{socket_->fd(), static_cast<short>(blocked ? POLLOUT : POLLIN), 0};
}

bool Endpoint::progress() {
  bool moved = pump();
  if (!ready()) return moved;
  // What has arrived comes before the timer: a rank that was not scheduled for a while must not ask
  // for what has been answered already.
  moved |= receive();
  const Instant now = io::now();
  if (agent_.deadline() <= now) agent_.timeout(now);
  moved |= pump();
  return moved;
}

bool Endpoint::receive() {
  const std::size_t count = socket_->receive(pool_, arrivals_);
  for (std::size_t i = 0; i < count; ++i) {
    take(arrivals_[i]);
    arrivals_[i].train.owner = {};
  }
  return count != 0;
}

HeldUpBy Endpoint::held_up_by() const {
  HeldUpBy who;
  for (std::uint8_t lane = 0; lane < config_.agent.lanes; ++lane) {
    const std::optional<std::uint64_t> ranks = agent_.waits_for(Lane(lane));
    if (!ranks) continue;
    who.ranks |= *ranks;
    if (*ranks == 0) who.servers |= std::uint64_t{1} << config_.lane_servers[lane];
  }
  return who;
}

std::string Endpoint::summary() const {
  const agent::Counters& agent = agent_.counters();
  std::string text = fmt::format(
      "agent: sent {}, repeated {}, received {}, accepted {}, naks {}, timeouts {}, rtt {} us, "
      "from strangers {}",
      agent.sent, agent.repeated, agent.received, agent.accepted, agent.naks, agent.timeouts,
      std::chrono::duration_cast<std::chrono::microseconds>(agent_.smoothed_rtt()).count(),
      counters_.from_strangers);
  if (!switch_) return text;
  const switching::Counters& own = switch_->counters();
  text += fmt::format(
      "; switch: received {}, accepted {}, finished {}, repeats answered {}, naks {}", own.received,
      own.accepted, own.slots_finished, own.repeats_answered, own.naks_sent);
  for (std::size_t i = 1; i < static_cast<std::size_t>(switching::Drop::count_); ++i) {
    if (own.dropped[i] == 0) continue;
    text += fmt::format(", dropped as {} {}", to_string(static_cast<switching::Drop>(i)),
                        own.dropped[i]);
  }
  return text;
}

std::uint32_t Endpoint::sender_of(const io::Address& address) {
  const auto& addresses = config_.addresses;
  if (addresses[last_sender_] == address) return last_sender_;
  const auto found = std::find(addresses.begin(), addresses.end(), address);
  if (found == addresses.end()) return nobody;
  last_sender_ = static_cast<std::uint32_t>(found - addresses.begin());
  return last_sender_;
}

void Endpoint::take(const io::Arrival& arrival) {
  const std::uint32_t sender = sender_of(arrival.from);
  const Instant now = io::now();
  const bool keep = pool_.free_count() >= pool_reserve;
  std::span<const std::byte> rest = arrival.train.bytes;
  while (!rest.empty()) {
    const auto packet = rest.first(std::min<std::size_t>(arrival.packet_bytes, rest.size()));
    rest = rest.subspan(packet.size());
    if (switch_ && is_for_switch(packet)) {
      switch_->receive(switching::Port(sender),
                       Packet{packet, keep ? arrival.train.owner : BufferRef()});
    } else if (sender != nobody) {
      agent_.receive(now, packet);
    } else {
      ++counters_.from_strangers;
    }
  }
}

// Agent and switch feed each other on the own lane until nothing moves, or the socket is full.
bool Endpoint::pump() {
  bool moved = false;
  for (;;) {
    if (!flush()) return moved;
    bool again = !own_results_.empty();
    for (const switching::Transmit& transmit : own_results_) deliver_own(transmit);
    own_results_.clear();
    again |= drain_agent(io::now());
    if (switch_) again |= drain_switch();
    if (!again) return moved;
    moved = true;
  }
}

bool Endpoint::drain_agent(Instant now) {
  bool moved = false;
  agent::Transmit transmit;
  while (!outbox_.full() && agent_.poll_transmit(now, transmit)) {
    moved = true;
    const std::uint32_t server = config_.lane_servers[transmit.lane.value];
    if (switch_ && server == config_.agent.rank.value) {
      contribute_own(transmit);
    } else {
      outbox_.add(server, transmit.header, transmit.payload, transmit.padding);
    }
  }
  return moved;
}

bool Endpoint::drain_switch() {
  bool moved = false;
  switching::Transmit transmit;
  while (!outbox_.full() && switch_->poll_transmit(transmit)) {
    moved = true;
    for (const switching::Port port : transmit.ports) {
      if (port.value == config_.agent.rank.value) {
        own_results_.push_back(transmit);
      } else if (port.value != nobody) {  // strangers are not answered (P16)
        outbox_.add(port.value, transmit.header, transmit.payload, {});
      }
    }
  }
  return moved;
}

// The switch keeps a contribution until its slot is summed; the agent's views do not live so long.
void Endpoint::contribute_own(const agent::Transmit& transmit) {
  const std::size_t bytes =
      transmit.header.size() + transmit.payload.size() + transmit.padding.size();
  if (own_buffer_ && own_buffer_used_ + bytes > io::receive_buffer_bytes) own_buffer_ = {};
  if (!own_buffer_ && pool_.free_count() >= pool_reserve) {
    own_buffer_ = pool_.acquire();
    own_buffer_used_ = 0;
  }
  std::byte* const begin = own_buffer_ ? own_buffer_.data() + own_buffer_used_ : scratch_.data();
  std::byte* at = begin;
  for (const auto& piece : {transmit.header, transmit.payload, transmit.padding}) {
    if (!piece.empty()) std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
  }
  own_buffer_used_ += (bytes + 7) / 8 * 8;
  switch_->receive(switching::Port(config_.agent.rank.value), Packet{{begin, bytes}, own_buffer_});
}

void Endpoint::deliver_own(const switching::Transmit& transmit) {
  const bool whole = transmit.header.data() + transmit.header.size() == transmit.payload.data();
  const std::size_t bytes = transmit.header.size() + transmit.payload.size();
  if (whole || transmit.payload.empty()) {
    agent_.receive(io::now(), {transmit.header.data(), bytes});
    return;
  }
  std::memcpy(scratch_.data(), transmit.header.data(), transmit.header.size());
  std::memcpy(scratch_.data() + transmit.header.size(), transmit.payload.data(),
              transmit.payload.size());
  agent_.receive(io::now(), std::span(scratch_).first(bytes));
}

}  // namespace cais::runtime
