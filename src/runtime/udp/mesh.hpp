// runtime/udp/mesh.hpp — the control channel of a group whose ranks all embed a switch: a TCP
// connection between each two of them.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time.hpp"
#include "io/control/connection.hpp"
#include "io/poller.hpp"
#include "runtime/udp/management.hpp"
#include "runtime/udp/mesh_messages.hpp"

namespace cais::runtime {

struct MeshConfig {
  Rank rank;
  std::uint64_t secret;  // of the group; strangers do not know it
  io::Address local;
  std::vector<io::Address> addresses;  // where each rank listens
  std::vector<std::string> names;      // for people: "rank 2 (host 'a', process 71)"
};

class Mesh final : public Management {
 public:
  /// Makes this rank's own switch know a descriptor.
  using Define = std::function<Result<void>(const wire::CommDescriptor&)>;

  /// Collective; `listener` is the one whose address the others were told. When it returns, the
  /// session is open at every rank. timed_out names the ranks that did not come.
  static Result<std::unique_ptr<Mesh>> connect(MeshConfig config, io::Listener listener,
                                               Define define, Instant deadline);

  void describe(const wire::CommDescriptor& descriptor, DescriptorHash hash,
                const wire::CommDescriptor& shown) override;
  /// Every rank's switch was told of every descriptor (P14), so that each can explain it.
  void report(const wire::Mismatch& mismatch) override;
  std::string not_yet_described(DescriptorHash hash) const override;
  void abort(const Error& reason) override;
  void leave(std::uint64_t ops) override;
  void progress() override;
  bool poll_event(ManagementEvent& out) override;
  bool alone() const override;
  int fd() const override { return ready_.fd(); }

  /// Ends the session at all ranks, this one too.
  void fail(const Error& error);

 private:
  enum class Presence : std::uint8_t { here, left, lost };
  struct Peer {
    io::Connection connection;
    Presence presence = Presence::here;
    bool waits_to_write = false;
  };
  struct Knowledge {
    wire::CommDescriptor shown;
    std::uint64_t ranks = 0;  // bit r: the switch at rank r knows it
    bool asked = false;       // a Described is due
  };

  Mesh(MeshConfig config, std::vector<io::Connection> connections, io::EventSet ready,
       Define define);
  void send(std::size_t rank, const mesh::Message& message);
  void broadcast(const mesh::Message& message);
  void read(std::size_t rank);
  void take(std::size_t rank, const mesh::Message& message);
  void lose(std::size_t rank);
  void learn(DescriptorHash hash, std::uint64_t ranks);
  bool define(const wire::CommDescriptor& descriptor, DescriptorHash hash,
              const wire::CommDescriptor& shown);

  MeshConfig config_;
  std::vector<Peer> peers_;  // by rank; this rank's own is never used
  io::EventSet ready_;
  Define define_;
  std::unordered_map<std::uint64_t, Knowledge> known_;
  std::deque<ManagementEvent> events_;
  std::uint64_t all_ranks_;
  bool ended_ = false;
};

}  // namespace cais::runtime
