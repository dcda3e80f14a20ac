// core/control/controller.hpp — the epochs of sessions (P15, P17, P19, P20) as a pure state
// machine: when a switch is lost, it fences the session at all its machines, gathers how far each
// rank has come, and begins the next epoch where the last one of them stands, at switches that
// live. No clock, socket or thread; time comes in as arguments.
//
//   open/adopt/close         which sessions there are
//   switch_found/lost,       what is found out about machines
//   rank_lost
//   receive(now, answer)     what machines say to orders
//   poll(order)              the next order, until there is none
//   poll_event(event)        what its owner should know, until there is none
//   deadline()               when to call timeout(now): orders are repeated until they are answered
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/fingerprint.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "core/control/orders.hpp"

namespace cais::control {

struct SessionSpec {
  SessionId session;
  Epoch epoch;  // in service
  std::uint16_t ranks;
  /// That could serve lanes. A tree does while all its switches live (P9); of two trees none shares
  /// a switch, for that would have two places in the session. All give the sum the same shape (P8).
  std::vector<std::vector<SwitchNumber>> trees;
  std::vector<TreeNumber> servers;  // by lane; where a lane goes back to when it can
  /// P18: a tree in the process of one of the ranks, which it does not outlive. It serves all lanes
  /// while no other tree lives. None: the session waits for one.
  std::optional<TreeNumber> fallback = {};
};

/// The session goes on in another epoch: P17 is through.
struct Resumed {
  SessionId session;
  Epoch epoch;
};
/// P18: no switch lives; from `from` on, by lane, the session is served by one of its ranks.
struct FellBack {
  SessionId session;
  Epoch epoch;
  std::vector<Seq> from;
};
/// No tree lives that could serve the session; it waits for one.
struct Stranded {
  SessionId session;
};
/// P19: every rank that lives has heard that the session is over.
struct Failed {
  SessionId session;
  std::string why;
};
/// A newer controller speaks; this one says nothing any more.
struct Superseded {
  Lease by;
};
/// P20: no switch that lives has anything of the session any more.
struct Closed {
  SessionId session;
};
using Event = std::variant<Resumed, FellBack, Stranded, Failed, Closed, Superseded>;

class Controller {
 public:
  explicit Controller(Lease lease, Duration retry = std::chrono::milliseconds(20));

  /// A session whose machines are in service in its epoch.
  /// invalid_argument: it is there already, has no ranks, lanes or switches, two trees share a
  /// switch, a lane is at a tree that is not there.
  Result<void> open(const SessionSpec& session);
  /// One of an earlier controller, which may have left its machines in any epoch and its lanes at
  /// any tree: it is taken into an epoch that is newer than all of them. Errors as open().
  Result<void> adopt(Instant now, const SessionSpec& session);
  /// P20. After a failure it closes by itself.
  void close(Instant now, SessionId session);

  /// It serves. `life` is another one each time it is started: then nothing is left of what it had.
  void switch_found(Instant now, SwitchNumber machine, std::uint64_t life);
  /// That life of it is over; no news when another one was found since.
  void switch_lost(Instant now, SwitchNumber machine, std::uint64_t life);
  /// P19. `who` names the rank for people: its host, its last op.
  void rank_lost(Instant now, SessionId session, Rank rank, const std::string& who);
  void receive(Instant now, const Answer& answer);

  bool poll(Order& out);
  bool poll_event(Event& out);
  Instant deadline() const;
  void timeout(Instant now);

  Lease lease() const { return lease_; }
  /// Whether the session is in service, as far as is known here.
  bool serves(SessionId session) const;
  /// The whole logical state, once orders and events are polled; of time only what it waits for.
  void fingerprint(Fingerprint& walk) const;

 private:
  enum class Phase : std::uint8_t {
    serving,
    fencing,    // ranks and switches that live
    placing,    // its switches begin the epoch
    beginning,  // its ranks do
    failing,
    closing,  // switches that live and have served it
    over,
  };
  struct Session {
    SessionSpec spec;
    Epoch epoch;
    Phase phase = Phase::serving;
    std::set<Node> awaited;
    std::set<Node> lost;                      // ranks
    std::vector<std::vector<Seq>> unsettled;  // by rank
    std::vector<Seq> from;                    // by lane
    std::vector<TreeNumber> servers;          // by lane
    std::set<SwitchNumber> placed;            // that may have something of it
    std::string why;
    bool told_stranded = false;
    bool fallen_back = false;
    Instant retry_at = never;
  };

  void lose(Instant now, Session& session, SwitchNumber machine);
  void next_epoch(Instant now, Session& session, Epoch after);
  void fail(Instant now, Session& session, std::string why);
  void take(Instant now, Session& session, const Answer& answer);
  void advance(Instant now, Session& session);
  void enter(Instant now, Session& session, Phase phase, std::set<Node> awaited);
  void order(const Session& session);
  void forget_closed();
  std::set<Node> ranks_of(const Session& session) const;
  std::set<Node> living(const Session& session, const std::set<SwitchNumber>& machines) const;
  bool lives(const Session& session, TreeNumber tree) const;
  std::vector<TreeNumber> living_trees(const Session& session) const;
  bool place(Session& session) const;

  Lease lease_;
  Duration retry_;
  std::map<SessionId, Session> sessions_;
  std::map<SwitchNumber, std::uint64_t> machines_;  // that live, with the life that they are in
  std::deque<Order> orders_;
  std::uint64_t ordered_ = 0;
  std::deque<Event> events_;
  bool superseded_ = false;
};

}  // namespace cais::control
