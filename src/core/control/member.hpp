// core/control/member.hpp — how ranks and switches take a controller's orders: which they obey
// (P15, P19, P20), and what they answer. What has to be done to agent or switch for it is said, and
// is the work of whoever owns these.
#pragma once

#include <map>
#include <optional>

#include "base/fingerprint.hpp"
#include "core/control/orders.hpp"

namespace cais::control {

/// What an order comes to.
struct Response {
  enum class Deed : std::uint8_t {
    nothing,
    fence,  // the agent, or the switch's session, for the order's epoch
    begin,  // there; a switch fences what it has of an older epoch, or opens what it has not, first
    fail,   // a rank: the session ends with the order's words
    close,  // a switch
  };
  Deed deed = Deed::nothing;
  /// To be sent once the deed is done. A rank adds to `fenced` how far it has come, and whoever
  /// cannot do the deed answers `refused`. None: whoever has overtaken the order will say more.
  std::optional<Answer> answer = {};
};

/// The epoch of a session at one machine, and who has brought it there.
class Member {
 public:
  /// In service in that epoch, by nobody's order. `newest`: the newest lease that the machine has
  /// heard of so far, over all its sessions.
  explicit Member(Epoch epoch, Lease newest = {}) : epoch_(epoch), newest_(newest) {}

  enum class Verdict : std::uint8_t {
    obey,
    again,     // it was obeyed before: answer, do nothing
    ahead,     // another controller has come as far or further
    late,      // its own controller has come further: no answer
    stale,     // a newer controller has spoken
    unfenced,  // to begin an epoch that was not fenced: an order was lost, it will come again
  };
  Verdict fence(Lease lease, Epoch epoch);
  Verdict begin(Lease lease, Epoch epoch);
  /// The session ends, whatever the epoch.
  Verdict end(Lease lease);

  /// In service, or fenced for.
  Epoch epoch() const { return epoch_; }
  bool fenced() const { return fenced_; }
  Lease newest() const { return newest_; }
  void fingerprint(Fingerprint& walk) const;

 private:
  bool hears(Lease lease);
  Verdict behind(Lease lease) const { return lease == by_ ? Verdict::late : Verdict::ahead; }

  Epoch epoch_;
  bool fenced_ = false;
  Lease newest_{};
  Lease by_{};  // who has brought it there
};

/// A rank, which lives as long as its session.
class RankMember {
 public:
  explicit RankMember(Epoch epoch) : member_(epoch) {}

  Response take(const Order& order);

  Epoch epoch() const { return member_.epoch(); }
  bool fenced() const { return member_.fenced(); }
  bool over() const { return over_; }
  void fingerprint(Fingerprint& walk) const;

 private:
  Member member_;
  bool over_ = false;  // P19
};

/// A switch, with all its sessions. Since it forgets a session when that is closed, it hears no
/// order that was given before the last that it has heard: that one was overtaken on its way, and
/// would open again what has been closed since (P20). Nothing is lost by it: what is not answered
/// is ordered again.
class SwitchMember {
 public:
  Response take(const Order& order);

  /// It registers with the controller that has this lease: an older one can open nothing here.
  void know(Lease lease);
  /// The session is in service in that epoch, by nobody's order.
  void open(SessionId session, Epoch epoch);
  void close(SessionId session) { sessions_.erase(session); }
  /// None: it has no such session.
  const Member* find(SessionId session) const;
  void fingerprint(Fingerprint& walk) const;

 private:
  Response begin(const Order& order);

  Lease newest_{};
  std::uint64_t last_ = 0;  // that it has heard of that controller
  std::map<SessionId, Member> sessions_;
};

}  // namespace cais::control
