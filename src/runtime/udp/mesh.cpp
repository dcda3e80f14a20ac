#include "runtime/udp/mesh.hpp"

#include <array>

#include "base/first_bits.hpp"
#include "core/switching/limits.hpp"
#include "runtime/udp/members.hpp"

namespace cais::runtime {
namespace {

constexpr std::uint64_t bit(std::size_t rank) { return std::uint64_t{1} << rank; }

}  // namespace

Mesh::Mesh(MeshConfig config, std::vector<io::Connection> connections, io::EventSet ready,
           Define define)
    : config_(std::move(config)),
      peers_(connections.size()),
      ready_(std::move(ready)),
      define_(std::move(define)),
      all_ranks_(first_bits(connections.size())) {
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    peers_[rank].connection = std::move(connections[rank]);
  }
}

void Mesh::send(std::size_t rank, const mesh::Message& message) {
  Peer& peer = peers_[rank];
  if (rank == config_.rank.value || peer.presence == Presence::lost) return;
  peer.connection.send(mesh::encode(message));
  if (peer.connection.wants_write() != peer.waits_to_write) {
    peer.waits_to_write = !peer.waits_to_write;
    ready_.want_write(peer.connection.fd(), rank, peer.waits_to_write);
  }
}

void Mesh::broadcast(const mesh::Message& message) {
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) send(rank, message);
}

bool Mesh::define(const wire::CommDescriptor& descriptor, DescriptorHash hash,
                  const wire::CommDescriptor& shown) {
  if (known_.contains(hash.value)) return true;
  Result<void> defined = define_(descriptor);
  if (!defined) {
    fail(defined.error());
    return false;
  }
  known_[hash.value] = Knowledge{shown, bit(config_.rank.value), false};
  return true;
}

void Mesh::describe(const wire::CommDescriptor& descriptor, DescriptorHash hash,
                    const wire::CommDescriptor& shown) {
  if (!define(descriptor, hash, shown)) return;
  Knowledge& knowledge = known_[hash.value];
  knowledge.asked = true;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if ((knowledge.ranks & bit(rank)) == 0) send(rank, mesh::Describe{descriptor, shown});
  }
  learn(hash, 0);
}

void Mesh::learn(DescriptorHash hash, std::uint64_t ranks) {
  const auto found = known_.find(hash.value);
  if (found == known_.end()) return;  // an answer to what was never asked
  Knowledge& knowledge = found->second;
  knowledge.ranks |= ranks;
  if (knowledge.ranks == all_ranks_ && knowledge.asked) {
    knowledge.asked = false;
    events_.push_back(Described{hash});
  }
}

void Mesh::report(const wire::Mismatch& mismatch) {
  const auto first = known_.find(mismatch.first_descriptor.value);
  const auto second = known_.find(mismatch.second_descriptor.value);
  if (ended_ || first == known_.end() || second == known_.end()) return;
  const mesh::Mismatch message{mismatch.first, mismatch.second, first->second.shown,
                               second->second.shown};
  take(config_.rank.value, message);
}

std::string Mesh::not_yet_described(DescriptorHash hash) const {
  const auto found = known_.find(hash.value);
  const std::uint64_t known = found == known_.end() ? 0 : found->second.ranks;
  return names_in(config_.names, all_ranks_ & ~known);
}

void Mesh::fail(const Error& error) {
  if (ended_) return;
  ended_ = true;
  broadcast(mesh::Failed{error.code, error.message.substr(0, io::message_bytes_max / 2)});
  events_.push_back(Ended{error});
}

void Mesh::abort(const Error& reason) {
  fail(Error{reason.code,
             config_.names[config_.rank.value] + " aborted the group: " + reason.message});
}

void Mesh::leave(std::uint64_t ops) { broadcast(mesh::Bye{ops}); }

bool Mesh::alone() const {
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (rank != config_.rank.value && peers_[rank].presence == Presence::here) return false;
  }
  return true;
}

bool Mesh::poll_event(ManagementEvent& out) {
  if (events_.empty()) return false;
  out = std::move(events_.front());
  events_.pop_front();
  return true;
}

void Mesh::progress() {
  std::array<io::EventSet::Ready, ranks_max> ready;
  const std::size_t count = ready_.poll(ready);
  for (const io::EventSet::Ready& which : std::span(ready).first(count)) {
    const auto rank = static_cast<std::size_t>(which.token);
    Peer& peer = peers_[rank];
    if (which.writable) {
      peer.connection.flush();
      peer.waits_to_write = peer.connection.wants_write();
      ready_.want_write(peer.connection.fd(), rank, peer.waits_to_write);
    }
    read(rank);
  }
}

void Mesh::read(std::size_t rank) {
  Peer& peer = peers_[rank];
  if (rank == config_.rank.value || peer.presence == Presence::lost) return;
  std::string bytes;
  while (peer.connection.receive(bytes)) {
    Result<mesh::Message> message = mesh::decode(bytes);
    if (!message) {
      fail(Error{
          ErrorCode::malformed,
          config_.names[rank] + " sent an unreadable control message: " + message.error().message});
      return;
    }
    take(rank, *message);
  }
  if (peer.connection.state() != io::Connection::State::open) lose(rank);
}

void Mesh::lose(std::size_t rank) {
  Peer& peer = peers_[rank];
  ready_.remove(peer.connection.fd());
  const bool in_order = peer.presence == Presence::left;
  peer.presence = Presence::lost;
  if (ended_) return;
  if (in_order) return events_.push_back(Gone{Rank(static_cast<std::uint16_t>(rank))});
  const bool broken = peer.connection.state() == io::Connection::State::broken;
  fail(Error{ErrorCode::rank_lost,
             config_.names[rank] + " is lost: its control connection " +
                 (broken ? "broke (" + peer.connection.reason() + ")" : "was closed") +
                 ". Look for the reason in that rank's own output"});
}

void Mesh::take(std::size_t rank, const mesh::Message& message) {
  // After the end nothing is defined any more: the switch may be gone.
  if (ended_ && !std::holds_alternative<mesh::Bye>(message)) return;
  if (const auto* describe = std::get_if<mesh::Describe>(&message)) {
    const DescriptorHash hash = wire::hash(describe->descriptor);
    if (!define(describe->descriptor, hash, describe->shown)) return;
    send(rank, mesh::Defined{hash});
    learn(hash, bit(rank));
  } else if (const auto* defined = std::get_if<mesh::Defined>(&message)) {
    learn(defined->descriptor, bit(rank));
  } else if (const auto* mismatch = std::get_if<mesh::Mismatch>(&message)) {
    events_.push_back(Refused{mismatch->first, mismatch->second, mismatch->first_descriptor,
                              mismatch->second_descriptor});
    ended_ = true;
    broadcast(*mismatch);  // ours, or passed on as a failure is
  } else if (const auto* failed = std::get_if<mesh::Failed>(&message)) {
    // Passed on: whoever hears of the end closes its connections, and another rank may see that
    // before it hears why.
    fail(Error{failed->code, failed->message});
  } else if (const auto* bye = std::get_if<mesh::Bye>(&message)) {
    peers_[rank].presence = Presence::left;
    events_.push_back(Left{Rank(static_cast<std::uint16_t>(rank)), bye->ops});
  }
}

}  // namespace cais::runtime
