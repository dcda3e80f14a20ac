// core/agent/agent.hpp — the endpoint of one rank in one session (P1–P4) as a pure state machine:
// it cuts the ops of the session into fragments, keeps each lane's window, repeats what was lost,
// and puts results where they belong. No clock, socket or thread; time comes in as arguments.
//
//   submit(op)               appends a collective; its memory must stay until its Done event. The
//                            caller bounds how many are under way
//   receive(now, packet)     takes one packet of this session
//   poll_transmit(now, out)  the next packet to send, until there is none; what it points at stays
//                            valid until the next receive(), timeout() or submit()
//   poll_event(out)          Done, in the order of submission, and Mismatched, until there is none
//   deadline()               when to call timeout(now); may change after any call above
//   fence(), resume(…)       another epoch: other switches, from the first fragment on that some
//                            rank has not settled (P15, P17)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>

#include "base/result.hpp"
#include "base/time.hpp"
#include "base/types.hpp"
#include "nir/plan.hpp"
#include "wire/descriptor.hpp"
#include "wire/header.hpp"

namespace cais {
class Fingerprint;
}

namespace cais::agent {

struct Config {
  SessionId session;
  Epoch epoch;
  Rank rank;
  std::uint16_t ranks;
  std::uint8_t lanes;              // of the session
  std::uint32_t window_fragments;  // W of each lane
  wire::Keys keys;                 // of this epoch; of this rank at least
  Seq first_seq{};                 // where each lane begins to count, as in the switch
  Duration rto_initial = std::chrono::milliseconds(20);
  Duration rto_min = std::chrono::milliseconds(2);    // floor (P2)
  Duration rto_max = std::chrono::milliseconds(500);  // cap of the back-off
  std::uint32_t packets_initial = 32;  // on their way in a lane before answers tell how many may be
  /// P4: keep what another epoch may ask for: 2W fragments of each lane, those of ops that are done
  /// as copies. Without it there is no resume().
  bool retains = false;
};

/// One collective. `send` and `recv` follow nir/plan.hpp: `recv` of an all_gather holds `ranks`
/// units in rank order, `send` of a reduce_scatter holds `ranks` units; the root of a broadcast has
/// its tensor in `send`. They may be the same memory where the plan's units line up (all_reduce in
/// place, a shard in its own place).
struct Submit {
  std::uint64_t op;  // the caller's number for it; comes back in Done
  DescriptorHash descriptor;
  nir::Plan plan;  // of that descriptor
  const std::byte* send;
  std::byte* recv;
};

/// One packet for the switch that serves `lane`.
struct Transmit {
  Lane lane;
  std::span<const std::byte> header;   // header_bytes, ready to send
  std::span<const std::byte> payload;  // a view of the tensor itself
  std::span<const std::byte> padding;  // zeros behind it, up to the fragment's size
};

struct Done {
  std::uint64_t op;
};
/// P12: ranks called different collectives; `op` is the one of ours that stands there. Nothing of
/// the session will be done any more: its ops under way are forgotten, later ones are not taken.
struct Mismatched {
  std::uint64_t op;
  Rank first, second;
  DescriptorHash first_descriptor, second_descriptor;
};
/// P16: the switch of that lane says that it has no such session: it was started anew. Told once in
/// each epoch.
struct NoSession {
  Lane lane;
};
using Event = std::variant<Done, Mismatched, NoSession>;

struct Counters {
  std::uint64_t sent = 0, repeated = 0, received = 0, accepted = 0;
  std::uint64_t dropped_malformed = 0, dropped_tag = 0, dropped_foreign = 0, dropped_stale = 0;
  std::uint64_t naks = 0, timeouts = 0;
};

class Agent {
 public:
  explicit Agent(const Config& config);
  Agent(const Agent& other);  // another agent in the same state, with the same tensors
  Agent& operator=(const Agent& other);
  ~Agent();

  void submit(const Submit& op);
  void receive(Instant now, std::span<const std::byte> packet);
  bool poll_transmit(Instant now, Transmit& out);
  bool poll_event(Event& out);
  Instant deadline() const;
  void timeout(Instant now);

  const Counters& counters() const;
  /// Smoothed round-trip time of the slowest lane; zero before the first sample.
  Duration smoothed_rtt() const;
  /// Whether every submitted op is done.
  bool idle() const;
  /// P16: the ranks that hold up what is under way in `lane`, bit r for rank r, as its switch said
  /// last; 0: it was asked and has not answered. Nothing: nothing is under way, or it is too early
  /// to ask.
  std::optional<std::uint64_t> waits_for(Lane lane) const;
  /// P15: from now on nothing of this epoch is taken or sent, and no timer runs. Again is a no-op.
  void fence();
  /// P17: the first fragment of the lane that is not settled, in this epoch or an earlier one.
  Seq first_unsettled(Lane lane) const;
  /// P15, P17: after fence(), begins `epoch` at the seqs `from`, by lane: the least of all ranks'
  /// first_unsettled. Fragments that are settled go out again as what was kept of them, with
  /// flag_final where that is the sum.
  /// invalid_argument: not fenced, an epoch that is not newer, or a seq of which nothing is kept.
  Result<void> resume(Epoch epoch, std::span<const Seq> from);

  /// Walks what decides which packets are taken and sent, as of `now`; no two states that would
  /// act differently on the same packets and time-outs give the same number.
  void fingerprint(Instant now, Fingerprint& walk) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cais::agent
