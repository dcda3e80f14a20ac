// sim/check/model.hpp — a small world whose every run can be walked: a few ranks, one switch or a
// tree of them, a few fragments, and a network that may do anything. Built of the machines that
// ship.
//
// The network is the set of all packets that were ever sent; any of them may arrive at any time,
// any number of times, or never. That is loss, doubling, reordering and delay without bound, and it
// is finite. Time only passes for a rank when its timer runs out; then it has run out for all that
// the rank has sent before. Timers have one length, so that how long is no question, only in which
// order. The answer of P16, which only informs, is delivered at once.
//
// Some worlds have a second epoch (P15, P17), which may begin at any point: a switch may lose all
// that it has, the ranks are fenced one by one, the switches begin one by one once all are, and
// then the ranks, while packets of both epochs arrive wherever they like.
//
// A run that goes on without faults from any state must end (I7): `ends` plays one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/agent/agent.hpp"
#include "core/switching/switch.hpp"
#include "sim/check/walk.hpp"
#include "sim/oracle.hpp"

namespace cais::sim {

/// One collective of a world; `fragments` of the whole op.
struct SmallOp {
  OpKind kind;
  std::uint32_t fragments;
};

struct SmallWorld {
  std::string name;
  std::uint16_t ranks;
  std::uint32_t window;
  std::vector<SmallOp> ops;
  bool mismatch = false;  // the last rank's last op is another one
  bool epochs = false;    // there is a second one
  /// P9: the switch of the lower of two levels that each rank is below; empty: one switch.
  std::vector<std::size_t> leaf_of_rank = {};
};
/// All that can be checked by name.
const std::vector<SmallWorld>& small_worlds();

/// What happens next.
struct Action {
  enum class Kind : std::uint8_t {
    packet,   // arrives
    timeout,  // of a rank
    crash,    // a switch loses all that it has
    fence,    // a rank
    place,    // a switch begins the second epoch
    begin,    // a rank begins it
  };
  Kind kind;
  std::uint32_t which;  // packet, rank or node of the tree
};

/// Of a packet that one of the machines has sent.
wire::Header header_of(std::span<const std::byte> packet);

/// Packets that were sent, by number.
class PacketSet {
 public:
  bool has(std::uint32_t packet) const {
    return packet / 64 < words_.size() && (words_[packet / 64] >> packet % 64 & 1) != 0;
  }
  void insert(std::uint32_t packet) {
    if (packet / 64 >= words_.size()) words_.resize(packet / 64 + 1);
    words_[packet / 64] |= std::uint64_t{1} << packet % 64;
  }
  std::uint32_t end() const { return static_cast<std::uint32_t>(64 * words_.size()); }

 private:
  std::vector<std::uint64_t> words_;
};

/// Where all machines are. A copy goes on by itself.
struct State {
  State(const Script& script, const Tree& tree) : oracle(script, tree) {}
  const std::string& complaint() const { return oracle.complaint(); }

  std::vector<agent::Agent> agents;
  std::vector<switching::Switch> switches;  // by node of the tree
  std::vector<Instant> clocks;              // by rank
  PacketSet sent;
  std::vector<std::uint64_t> sums;     // of the sent packets' fingerprints, by names of the ranks
  std::vector<std::uint64_t> written;  // by rank: the parts of its outputs that it has
  enum class Phase : std::uint8_t { first, fenced, second };
  std::vector<Phase> phases;           // by rank
  std::optional<std::size_t> crashed;  // the node that has lost all that it had
  std::vector<bool> placed;            // by node: it has begun the second epoch, at `from`
  Seq from{};
  Oracle oracle;
};

class Model {
 public:
  using State = sim::State;
  using Action = sim::Action;
  static constexpr Epoch first_epoch{1};
  static constexpr Epoch second_epoch{2};

  explicit Model(const SmallWorld& world);

  State first();
  void actions(const State& state, std::vector<Action>& out) const;
  bool possible(const State& state, const Action& action) const;
  /// What must not be is in state.oracle.complaint() afterwards.
  void apply(State& state, const Action& action);
  /// The same number for states that differ only in who is who, where ranks are alike.
  std::uint64_t fingerprint(const State& state) const;
  End ends(State state, Sent so_far);
  std::string to_string(const Action& action) const;

 private:
  static constexpr SessionId session{1};

  /// A rank, or, behind the ranks, a switch.
  using Endpoint = std::uint32_t;
  struct PacketKind {
    Endpoint from;
    Endpoint to;
    std::vector<std::byte> bytes;
    std::vector<std::uint64_t> fingerprints;  // by names of the ranks
  };
  /// One fragment of one source in a rank's output.
  struct Part {
    std::size_t op;
    std::size_t offset;
    std::size_t bytes;
  };

  void add_op(const SmallOp& op, std::uint64_t number, bool other);
  void find_names(const SmallWorld& world);
  void find_parts();
  bool is_rank(Endpoint endpoint) const { return endpoint < world_.ranks; }
  Endpoint endpoint_of(std::size_t node) const {
    return static_cast<Endpoint>(world_.ranks + node);
  }
  std::size_t node_of(Endpoint endpoint) const { return endpoint - world_.ranks; }
  void open_switch(switching::Switch& machine, std::size_t node) const;
  std::uint32_t number_of(Endpoint from, Endpoint to, std::vector<std::byte> bytes);
  bool sums(const PacketKind& packet, const wire::Header& header) const;
  std::uint64_t packet_fingerprint(const PacketKind& packet,
                                   std::span<const std::uint16_t> names) const;
  bool changes_epoch(const State& state, Action& next) const;
  static bool any_placed(const State& state);
  void place(State& state, std::size_t node);
  void deliver(State& state, const PacketKind& packet);
  void deliver_to_switch(State& state, const PacketKind& packet);
  void poll_agent(State& state, Rank rank);
  void poll_switch(State& state, std::size_t node);
  void tell_oracle(State& state, std::size_t node, Endpoint to,
                   std::span<const std::byte> packet) const;
  void send(State& state, Endpoint from, Endpoint to, std::vector<std::byte> bytes);
  std::string name_of(Endpoint endpoint) const;
  void blank_outputs(Rank rank);
  void prepare_outputs(const State& state, Rank rank);
  void check_outputs(State& state, Rank rank);
  void check_done(State& state, Rank rank, std::uint64_t op);

  SmallWorld world_;
  Tree tree_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::unique_ptr<Script> script_;
  std::vector<std::vector<std::uint16_t>> names_;  // permutations under which ranks are alike
  std::vector<std::vector<Part>> parts_;           // by rank
  std::vector<PacketKind> packets_;                // by number
  std::map<std::string, std::uint32_t> numbers_;   // by bytes, sender and receiver
  std::vector<std::uint32_t> fresh_;               // sent by the last action, in order
};

}  // namespace cais::sim
