// core/control/orders.hpp — what a controller tells the machines of a session, and what they
// answer. Plain values: whoever carries them may lose them, double them, or let them overtake each
// other.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace cais::control {

/// A controller's claim to speak. Of two, the greater one holds (P15).
using Lease = Strong<struct LeaseTag, std::uint64_t>;
/// A machine that serves lanes; its owner numbers them.
using SwitchNumber = Strong<struct SwitchNumberTag, std::uint32_t>;
/// Switches that serve lanes together (P9), or one that does so alone; counted by session.
using TreeNumber = Strong<struct TreeNumberTag, std::uint32_t>;

/// Who takes part in a session: one of its ranks, or a switch.
struct Node {
  enum class Kind : std::uint8_t { rank, machine };
  Kind kind = Kind::rank;
  std::uint32_t number = 0;

  bool is(Kind what) const { return kind == what; }
  auto operator<=>(const Node&) const = default;
};
inline Node node(Rank rank) { return {Node::Kind::rank, rank.value}; }
inline Node node(SwitchNumber machine) { return {Node::Kind::machine, machine.value}; }

struct Order {
  enum class Kind : std::uint8_t {
    fence,  // take nothing of epochs before `epoch`, and nothing of it yet (P15)
    begin,  // `epoch`, at the seqs `from`, with the lanes at `servers` (P17)
    fail,   // the session is over, because of `why` (P19)
    close,  // to switches: what the session has there comes back (P20)
  };
  Kind kind;
  Lease lease;
  std::uint64_t number;  // counts what the controller has ordered; one that is given again is new
  SessionId session;
  Epoch epoch;
  Node to;
  std::vector<Seq> from;            // begin: by lane
  std::vector<TreeNumber> servers;  // begin: by lane
  std::string why;                  // fail: the same words for every rank
};

struct Answer {
  enum class Kind : std::uint8_t {
    fenced,  // a rank says `unsettled` with it
    begun,
    failed,
    closed,
    ahead,    // it is in service in `epoch` already, which is not older than the order's
    stale,    // it has heard of the lease `lease`, which is newer
    refused,  // it cannot, because of `why`
  };
  Kind kind;
  Lease lease;  // of the order; of a stale one's: the newest that was heard of
  SessionId session;
  Epoch epoch;
  Node from;
  std::vector<Seq> unsettled;  // fenced: the first unsettled seq, by lane
  std::string why;             // refused
};

const char* to_string(Order::Kind kind);
const char* to_string(Answer::Kind kind);

}  // namespace cais::control
