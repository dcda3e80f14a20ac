// How a mesh comes together: every rank connects to those before it, says who it is, and is made
// welcome; whoever does not know the group's secret is turned away.
#include <algorithm>

#include "io/clock.hpp"
#include "runtime/udp/mesh.hpp"

namespace cais::runtime {
namespace {

constexpr std::size_t strangers_max = 128;  // connections that have not said who they are

class Gathering {
 public:
  Gathering(const MeshConfig& config, io::Listener& listener, Instant deadline)
      : config_(config),
        listener_(listener),
        deadline_(deadline),
        connections_(config.addresses.size()),
        welcome_(config.addresses.size(), false) {
    welcome_[config.rank.value] = true;
  }

  Result<std::vector<io::Connection>> run() {
    for (std::size_t rank = 0; rank < config_.rank.value; ++rank) {
      Result<io::Connection> connection =
          io::connect_to(config_.local, config_.addresses[rank], deadline_);
      if (!connection) return because(rank, connection.error());
      connections_[rank] = std::move(*connection);
      connections_[rank].send(mesh::encode(mesh::Hello{config_.secret, config_.rank}));
    }
    while (!std::all_of(welcome_.begin(), welcome_.end(), [](bool is) { return is; })) {
      if (io::now() >= deadline_) return missing();
      wait();
      accept();
      for (std::size_t rank = 0; rank < config_.rank.value; ++rank) {
        if (Result<void> read = read_welcome(rank); !read) return read.error();
      }
    }
    return std::move(connections_);
  }

 private:
  void wait() {
    std::vector<pollfd> waiting{{listener_.fd(), POLLIN, 0}};
    for (const io::Connection& stranger : strangers_) {
      waiting.push_back({stranger.fd(), POLLIN, 0});
    }
    for (std::size_t rank = 0; rank < config_.rank.value; ++rank) {
      if (!welcome_[rank]) waiting.push_back({connections_[rank].fd(), POLLIN, 0});
    }
    io::wait_any(waiting, deadline_ - io::now());
  }

  void accept() {
    if (io::Connection stranger = listener_.accept(); stranger.fd() >= 0) {
      if (strangers_.size() == strangers_max) strangers_.erase(strangers_.begin());
      strangers_.push_back(std::move(stranger));
    }
    std::erase_if(strangers_, [this](io::Connection& stranger) {
      std::string bytes;
      if (!stranger.receive(bytes)) return stranger.state() != io::Connection::State::open;
      admit(stranger, bytes);
      return true;
    });
  }

  void admit(io::Connection& stranger, const std::string& bytes) {
    const Result<mesh::Message> message = mesh::decode(bytes);
    const auto* hello = message.ok() ? std::get_if<mesh::Hello>(&message.value()) : nullptr;
    if (hello == nullptr || hello->secret != config_.secret) return;
    const std::size_t rank = hello->rank.value;
    if (rank <= config_.rank.value || rank >= welcome_.size() || welcome_[rank]) return;
    connections_[rank] = std::move(stranger);
    connections_[rank].send(mesh::encode(mesh::Welcome{}));
    welcome_[rank] = true;
  }

  Result<void> read_welcome(std::size_t rank) {
    std::string bytes;
    if (welcome_[rank]) return {};
    if (connections_[rank].receive(bytes)) {
      const Result<mesh::Message> message = mesh::decode(bytes);
      welcome_[rank] = message.ok() && std::holds_alternative<mesh::Welcome>(message.value());
      if (welcome_[rank]) return {};
    } else if (connections_[rank].state() == io::Connection::State::open) {
      return {};
    }
    return because(rank, Error{ErrorCode::unavailable, "it closed the connection"});
  }

  Error because(std::size_t rank, const Error& error) const {
    return Error{error.code, "cannot reach " + config_.names[rank] + " over TCP: " + error.message};
  }

  Error missing() const {
    std::string names;
    for (std::size_t rank = 0; rank < welcome_.size(); ++rank) {
      if (!welcome_[rank]) names += (names.empty() ? "" : ", ") + config_.names[rank];
    }
    return Error{ErrorCode::timed_out, "no control connection to " + names + " in time"};
  }

  const MeshConfig& config_;
  io::Listener& listener_;
  Instant deadline_;
  std::vector<io::Connection> connections_;
  std::vector<io::Connection> strangers_;
  std::vector<bool> welcome_;
};

}  // namespace

Result<std::unique_ptr<Mesh>> Mesh::connect(MeshConfig config, io::Listener listener, Define define,
                                            Instant deadline) {
  Result<std::vector<io::Connection>> connections = Gathering(config, listener, deadline).run();
  if (!connections) return connections.error();
  Result<io::EventSet> ready = io::EventSet::open();
  if (!ready) return ready.error();
  for (std::size_t rank = 0; rank < connections->size(); ++rank) {
    if (rank == config.rank.value) continue;
    if (Result<void> added = ready->add(connections.value()[rank].fd(), rank); !added) {
      return added.error();
    }
  }
  auto mesh = std::unique_ptr<Mesh>(
      new Mesh(std::move(config), std::move(*connections), std::move(*ready), std::move(define)));
  // Messages may have come together with the welcome; the event set does not tell of those.
  for (std::size_t rank = 0; rank < mesh->peers_.size(); ++rank) mesh->read(rank);
  return mesh;
}

}  // namespace cais::runtime
