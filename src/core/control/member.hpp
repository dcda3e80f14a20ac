// core/control/member.hpp — what a machine remembers of its controllers: of a session which epoch
// it serves, and the newest lease that it has heard of; over all sessions the last order that it
// has heard. They decide which orders are obeyed (P15); what is then done to agent or switch is its
// runtime's work.
#pragma once

#include "core/control/orders.hpp"

namespace cais::control {

class Member {
 public:
  /// In service in that epoch, by nobody's order. `newest`: a machine remembers the newest lease
  /// over the sessions that it has had, so that a deposed controller cannot open one again.
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

 private:
  bool hears(Lease lease);
  Verdict behind(Lease lease) const { return lease == by_ ? Verdict::late : Verdict::ahead; }

  Epoch epoch_;
  bool fenced_ = false;
  Lease newest_{};
  Lease by_{};  // who has brought it there
};

/// Of a switch, which has sessions only while they are open: what was given before the last order
/// that it has heard was overtaken on its way, or is a deposed controller's, and would open again
/// what has been closed since (P20). Nothing is lost by it: what is not answered is ordered again.
class Hearing {
 public:
  enum class Verdict : std::uint8_t { hear, overtaken, stale };
  Verdict take(Lease lease, std::uint64_t number);
  /// It has registered with the controller that has this lease.
  void know(Lease lease);
  Lease newest() const { return newest_; }

 private:
  Lease newest_{};
  std::uint64_t last_ = 0;
};

}  // namespace cais::control
