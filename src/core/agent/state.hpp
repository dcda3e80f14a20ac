// core/agent/state.hpp — the agent behind its interface: ops under way, and for each lane the
// fragments in its window. What it does with them stands in transmit.cpp (P1), receive.cpp (P3),
// recover.cpp (P2, P10) and resume.cpp (P4, P15, P17). Values only: a copy of an agent is another
// one in the same state.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/agent/agent.hpp"
#include "core/agent/estimator.hpp"

namespace cais::agent {

/// A collective under way, or one that is done and of which another epoch may still ask (P4).
struct Op {
  Submit submit;
  std::uint32_t unsettled;      // fragments
  std::uint32_t recorded;       // fragments whose record stands, or that are not sent yet
  std::vector<std::byte> kept;  // what those would contribute again, once the op is done
};
using OpNumber = std::uint64_t;  // counts the ops of the session from 0

/// A fragment in the window.
struct Fragment {
  enum class State : std::uint8_t { unsent, waiting, settled };
  enum class Due : std::uint8_t {
    nothing,
    contribution,
    question,  // how it stands at the switch
    want,      // what the switch has and we lack
  };
  State state = State::unsent;
  Due due = Due::nothing;    // what is queued to be sent for it
  bool repeated = false;     // no round trip can be read from its answer
  bool clocked = false;      // an answer called it forth
  bool arrived = false;      // our contribution is at the switch
  bool finished = false;     // every rank's contribution is at the switch
  bool lost = false;         // something of it was, as the switch has said
  bool applied = false;      // was settled, in this epoch or an earlier one
  std::uint8_t packets = 0;  // on their way that answer it
  std::uint32_t index = 0;   // in its op
  OpNumber op = 0;
  std::size_t kept_at = 0;    // in its op's `kept`
  std::uint64_t lacking = 0;  // ranks whose payload is still owed to us; rank 0's bit for a sum
  Instant sent_at{};          // the contribution, for the last time
  Instant spoken_of_at{};     // contribution or question, for the last time
  /// Whether the switch was asked about it since the contribution last went.
  bool asked() const { return spoken_of_at != sent_at; }
  std::array<std::byte, wire::header_bytes> header{};
  std::array<std::byte, wire::want_bytes> want{};
};

/// The part of an op that a lane has still to send.
struct Share {
  OpNumber op;
  nir::FragmentRange left;
};

struct LaneState {
  LaneState(const Config& config, Lane which);

  Fragment& at(Seq seq) { return window[seq.value & (window.size() - 1)]; }
  const Fragment& at(Seq seq) const { return window[seq.value & (window.size() - 1)]; }
  /// Whether `seq` was sent and is not settled with all before it.
  bool in_window(Seq seq) const { return !before(seq, base) && before(seq, next); }

  /// One past the last that was sent in any epoch.
  Seq recorded_end() const { return first + static_cast<std::uint32_t>(recorded); }

  Lane lane;
  Seq first;                               // of the session
  std::uint64_t recorded = 0;              // fragments that were sent in any epoch
  Seq base;                                // the first that is not settled
  LanePosition position;                   // there
  Seq next;                                // the next to be sent
  Seq settled_end;                         // one past the last that is settled
  std::uint32_t waiting = 0;               // sent and not settled
  std::uint32_t packets_on_their_way = 0;  // that answer those
  std::deque<Share> shares;
  std::vector<Fragment> window;  // W, or 2W for an agent that retains, by seq
  std::deque<Seq> repeats;       // fragments for which something is due
  RttEstimator rtt;
  bool clocked = false;  // answers have come since the lane was idle

  Seq held_up_at{};              // P16: what the switch has last spoken of
  std::uint64_t held_up_by = 0;  // the ranks that it lacked there; 0: it has not spoken

  Instant deadline = never;
  unsigned backoff = 0;
  Instant next_scan = Instant::min();  // when to look for overtaken fragments again
  Seq recover_from;                    // the first not asked about since the last timeout
  Seq recover_end;                     // one past the last that was sent before it
};

struct Agent::State {
  explicit State(const Config& config);

  Op& op(OpNumber number) { return ops[number - ops_first]; }
  const Op& op(OpNumber number) const { return ops[number - ops_first]; }
  bool all_done() const { return ops_done == ops_first + ops.size(); }

  // transmit.cpp
  bool poll(Instant now, Transmit& out);
  bool next_packet(Instant now, LaneState& lane, Transmit& out);
  void send_new(Instant now, LaneState& lane, Transmit& out);
  void send_repeat(Instant now, LaneState& lane, Seq seq, Transmit& out);
  void contribution(const LaneState& lane, Seq seq, Fragment& fragment, Transmit& out);

  void record_next(LaneState& lane);

  // receive.cpp
  enum class Outcome { accepted, malformed, wrong_tag, foreign, stale };
  Outcome receive(Instant now, std::span<const std::byte> packet);
  Outcome result(Instant now, LaneState& lane, const wire::Header& header,
                 std::span<const std::byte> payload);
  Outcome done(Instant now, LaneState& lane, const wire::Header& header);
  Outcome nak(Instant now, LaneState& lane, const wire::Header& header);
  Outcome waiting(Instant now, LaneState& lane, const wire::Header& header,
                  std::span<const std::byte> payload);
  Outcome mismatch(LaneState& lane, const wire::Header& header, std::span<const std::byte> payload);
  Outcome no_session(LaneState& lane, const wire::Header& header,
                     std::span<const std::byte> packet);
  void settle(Instant now, LaneState& lane, Seq seq);
  void end_round(Instant now);

  // recover.cpp
  void timeout(Instant now, LaneState& lane);
  void repeat_overtaken(Instant now, LaneState& lane);
  void recover_after(LaneState& lane, const Fragment& fragment);
  void recover_further(LaneState& lane, std::uint32_t count);
  void ask(LaneState& lane, Seq seq);
  void queue_repeat(LaneState& lane, Seq seq, Fragment::Due due);
  void repeat_lost(LaneState& lane, Seq seq, Fragment::Due due);

  // resume.cpp
  std::uint32_t kept_before(const LaneState& lane) const;
  void rewind(LaneState& lane, Seq from);
  void finish(OpNumber number);
  void keep(OpNumber number);
  void forget_ops();

  // fingerprint.cpp
  void walk_lane(Instant now, const LaneState& lane, Fingerprint& walk) const;

  Config config;
  std::vector<LaneState> lanes;
  std::deque<Op> ops;      // in order; first those that are done and kept
  OpNumber ops_first = 0;  // the number of ops.front()
  OpNumber ops_done = 0;   // the number of the first that is not done
  std::deque<Event> events;
  CongestionWindow congestion;
  Instant round_end = Instant::min();  // of the congestion window's round
  Counters counters;
  bool refused = false;          // P12
  bool fenced = false;           // P15
  bool told_no_session = false;  // in this epoch
  std::size_t turn = 0;          // the lane that sends
  std::uint32_t sent_in_turn = 0;
};

/// Ranks whose payloads of a fragment of `unit` are owed to `self`: itself excepted, whose payload
/// it has; rank 0 stands for a sum.
std::uint64_t owed(const nir::Plan& plan, Rank self, std::uint32_t unit);

/// Where the payload of `whose` belongs in the op's output.
std::byte* destination(const Submit& submit, Rank whose, const nir::Extent& extent);
/// What the rank contributes to a fragment, where the caller keeps it.
const std::byte* source(const Submit& submit, const nir::Extent& extent);

/// Where the caller keeps what `self` contributes to a fragment; once that is applied and summed,
/// the sum (P17).
const std::byte* contributed_from(const Submit& submit, Rank self, const Fragment& fragment);
/// Whether what `self` has of that fragment, and would contribute again, is the sum (P17).
bool contributes_sum(const nir::Plan& plan, Rank self, const Fragment& fragment);
/// The first fragment of the lane that is not settled in this epoch or an earlier one.
Seq first_unsettled(const LaneState& lane);

/// How old a fragment must be to count as overtaken.
Duration patience_of(const LaneState& lane);

}  // namespace cais::agent
