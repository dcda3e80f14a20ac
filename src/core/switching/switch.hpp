// core/switching/switch.hpp — the aggregation switch (P5–P14) as a pure state machine: sessions,
// their lanes and slots. No clock, socket or thread. One object serves the lanes that one worker
// was given; it never shares a slot with another.
//
//   open/define/bind/close   the management interface: sessions, descriptors, and from where ranks
//                            speak
//                            speak; in a tree also where the switch stands, and its parent (P9)
//   fence/resume             another epoch of a session (P15, P17)
//   receive(port, packet)    takes one packet; its buffer is kept until its slot has been summed
//   poll_transmit(out)       the next packet to send, until there is none; what it points at stays
//                            valid until the next receive(), close() or destruction
//   poll_event(out)          what the runtime should know, until there is none
//
// It has no timers: agents hold all that are needed for progress (P2).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/buffer.hpp"
#include "base/result.hpp"
#include "base/types.hpp"
#include "core/switching/limits.hpp"
#include "nir/plan.hpp"
#include "wire/descriptor.hpp"
#include "wire/header.hpp"

namespace cais {
class Fingerprint;
}

namespace cais::switching {

/// Where a packet came from, and where answers go. The runtime maps it to a socket address.
using Port = Strong<struct PortTag, std::uint32_t>;

/// Ranks, as a bitmap: bit r stands for rank r.
using RankSet = std::uint64_t;

/// P9: where a switch stands in the tree of a session. As it is, alone: above all ranks, with
/// nobody above itself. Every child is named by the least of the ranks below it.
struct TreePlace {
  std::uint8_t level = 1;         // 1: its children are ranks; n: switches of level n − 1
  bool has_parent = false;        // then nothing is finished before the parent says so
  std::vector<RankSet> children;  // the ranks below each; empty: every rank is a child
};

struct SessionConfig {
  SessionId session;
  Epoch epoch;
  std::uint16_t ranks;
  std::uint8_t lanes;               // of the session; this object may serve some of them only
  std::uint64_t lanes_served;       // bit l: lane l is ours
  std::uint32_t window_fragments;   // W, a power of two
  std::uint32_t payload_bytes_max;  // of one fragment
  wire::Keys keys;                  // of all ranks, in this epoch
  Seq first_seq{};                  // where each lane begins to count
  TreePlace place{};
};

/// One packet to one or more children of a session, or to its parent. Header bytes are ready to
/// send.
struct Transmit {
  std::span<const std::byte> header;
  std::span<const std::byte> payload;
  std::span<const Port> ports;
};

/// P12: two ranks called different collectives at the same place.
struct MismatchEvent {
  SessionId session;
  Rank first, second;
  DescriptorHash first_descriptor, second_descriptor;
};
/// P6: a newer seq on an unfinished slot: a rank broke the rules.
struct ViolationEvent {
  SessionId session;
  Rank rank;
  Lane lane;
  Seq seq;
};
using Event = std::variant<MismatchEvent, ViolationEvent>;

/// Why a packet changed nothing (P13). One counter each; I8: received = accepted + Σ dropped.
enum class Drop : std::uint8_t {
  none,
  malformed,
  wrong_tag,
  unknown_session,
  wrong_epoch,
  wrong_lane,
  wrong_port,
  rank_out_of_range,
  wrong_kind,
  unknown_descriptor,
  bad_length,
  wrong_place,
  stale_seq,
  violation,
  mismatch,
  count_,
};
const char* to_string(Drop drop);

struct Counters {
  std::uint64_t received = 0;
  std::uint64_t accepted = 0;
  std::uint64_t dropped[static_cast<std::size_t>(Drop::count_)] = {};
  std::uint64_t repeats_answered = 0;  // P7, P10, P16
  std::uint64_t naks_sent = 0;         // P11
  std::uint64_t slots_finished = 0;
  std::uint64_t transmits_lost = 0;  // the queue was full: nobody polled for too long
};

class Switch {
 public:
  Switch();
  Switch(const Switch& other);  // another switch in the same state; buffers are shared
  Switch& operator=(const Switch& other);
  ~Switch();

  Result<void> open(const SessionConfig& config);
  /// P14. Lowers the descriptor to a plan and keeps it; again with the same bytes is a no-op.
  Result<void> define(SessionId session, const wire::CommDescriptor& descriptor);
  /// From now on `rank`, or the switch that it is below, speaks from `port` alone (P13) and results
  /// for it go there.
  Result<void> bind(SessionId session, Rank rank, Port port);
  /// The same for the parent.
  Result<void> bind_parent(SessionId session, Port port);
  /// P15: takes nothing of the session's earlier epochs any more, and nothing of `epoch` before
  /// resume(). Lanes and what waits to be sent come back; programs and ports stay. Again is a
  /// no-op. invalid_argument: no such session, or an epoch that is older.
  Result<void> fence(SessionId session, Epoch epoch);
  /// P17: begins the fenced `epoch` at the seqs `from`, by lane of the session, of which
  /// `lanes_served` are served here from now on.
  /// invalid_argument: no such session, not fenced, another epoch, or lanes that it has not.
  Result<void> resume(SessionId session, Epoch epoch, std::uint64_t lanes_served,
                      std::span<const Seq> from);
  /// P20: slots, plans and buffers of the session come back.
  void close(SessionId session);

  /// `packet` without an owner is copied if it must be kept.
  Drop receive(Port port, Packet packet);
  bool poll_transmit(Transmit& out);
  bool poll_event(Event& out);

  const Counters& counters() const;
  /// I5: slots owned by open fragments, over all sessions.
  std::size_t slots_in_use() const;
  /// Walks what decides which packets are taken and what is answered; no two states that would act
  /// differently on the same packets give the same number. Poll before: what waits is not walked.
  void fingerprint(Fingerprint& walk) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cais::switching
