// runtime/udp/management.hpp — the slow channel beside the packets: which descriptors the switches
// know (P14), who is alive (P19), what was refused (P12), who has left.
//
//   describe(descriptor)   Described comes once every switch of the session knows it
//   report(mismatch)       what a switch has told this rank; Refused follows
//   abort(reason)          tells all peers
//   leave(ops)             the orderly end: this rank has started `ops` collectives and needs no
//   more progress()             does what can be done without waiting; call it when fd() is
//   readable poll_event(out)        what has happened, until there is none
//
// Two kinds: Mesh (every rank embeds a switch) and BoxClient (all lanes meet at a cais-switch).
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "base/result.hpp"
#include "base/types.hpp"
#include "wire/descriptor.hpp"
#include "wire/header.hpp"

namespace cais::runtime {

struct Described {
  DescriptorHash descriptor;
};
/// P12, with what is needed to explain it. The ranks are of the group.
struct Refused {
  Rank first, second;
  wire::CommDescriptor first_descriptor, second_descriptor;
};
/// `rank` has left in order after starting `ops` collectives.
struct Left {
  Rank rank;
  std::uint64_t ops;
};
/// `rank`, which had left in order, has stopped answering too.
struct Gone {
  Rank rank;
};
/// The session is over for all of its ranks: rank_lost, aborted, unavailable (the switch itself).
struct Ended {
  Error error;
};
using ManagementEvent = std::variant<Described, Refused, Left, Gone, Ended>;

class Management {
 public:
  virtual ~Management() = default;
  /// `shown` is what a mismatch shows in the place of `descriptor`: the collective that it is a
  /// step of, or the same.
  virtual void describe(const wire::CommDescriptor& descriptor, DescriptorHash hash,
                        const wire::CommDescriptor& shown) = 0;
  virtual void report(const wire::Mismatch& mismatch) = 0;
  /// Whose switch has not said that it knows the descriptor, in words.
  virtual std::string not_yet_described(DescriptorHash hash) const = 0;
  virtual void abort(const Error& reason) = 0;
  virtual void leave(std::uint64_t ops) = 0;
  virtual void progress() = 0;
  virtual bool poll_event(ManagementEvent& out) = 0;
  /// Whether every peer has left or is lost: nobody can need this rank any more.
  virtual bool alone() const = 0;
  virtual int fd() const = 0;
};

}  // namespace cais::runtime
