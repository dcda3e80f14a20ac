// core/switching/state.hpp — the switch behind its interface, and the queue of what it will send.
// Each step of a packet's way through it stands in a file of its own: admit.cpp (P13),
// contribute.cpp (P5, P6, P8, P10, P12), repeat.cpp (P7, P10, P11, P16), tree.cpp (P9),
// transmit.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "core/switching/session.hpp"

namespace cais::switching {

/// A packet to send. Kept packets are named, not pointed at: should their slot have been recycled
/// before the entry's turn comes, nobody waits for the packet any more.
struct Outgoing {
  static constexpr std::size_t note_bytes_max = wire::mismatch_bytes;
  static_assert(note_bytes_max >= wire::want_bytes && note_bytes_max >= wire::stamp_bytes);

  enum class Content : std::uint8_t {
    nothing,  // its session has been closed
    header,   // done, nak, waiting, an empty contribution: `header` alone
    note,     // waiting for a question, want, mismatch: `header` and `note`
    denial,   // no_session: `bytes` alone, to `port`
    result,   // the slot's result; on the way up: its partial
    payload,  // the payload that the slot keeps of `header.rank`
  };
  Content content = Content::nothing;
  bool up = false;            // to the parent
  RankSet targets = 0;        // children
  std::uint32_t session = 0;  // index in SwitchState::sessions
  Port port{};                // of a denial: whoever asks has no session here
  wire::Header header;        // of results and payloads on their way down: lane, seq and rank only
  std::array<std::byte, wire::header_bytes> bytes{};  // the header, once it is polled
  std::array<std::byte, note_bytes_max> note{};
  std::uint8_t note_bytes = 0;

  void attach(std::span<const std::byte> what);
};

/// First in, first out, bounded. Entries that were polled stay where they are until the next push.
class TransmitQueue {
 public:
  /// Position of an entry since the beginning; 0 is never one.
  using Position = std::uint64_t;

  /// False when the queue is full: the packet is lost, as on a network, and will be asked for
  /// again.
  bool push(const Outgoing& entry);
  Outgoing* front() { return head_ < entries_.size() ? &entries_[head_] : nullptr; }
  void pop() { ++head_; }
  /// The entry at that position while it waits; null once it was polled.
  Outgoing* waiting(Position position);
  Position last() const { return base_ + entries_.size() - 1; }
  void forget(std::uint32_t session);

 private:
  std::vector<Outgoing> entries_;
  std::size_t head_ = 0;
  Position base_ = 1;  // of entries_[0]
};

/// A packet on its way through the switch.
struct Arrival {
  Rank rank() const { return header.rank; }
  Seq seq() const { return header.seq; }

  wire::Header header;
  std::span<const std::byte> payload;
  Packet packet;
  Session* session = nullptr;
  std::uint32_t session_index = 0;
  LaneState* lane = nullptr;
  bool from_above = false;  // from the parent
  Rank child{};             // otherwise: who brought it, and the ranks below that
  RankSet below = 0;
};

struct Switch::State {
  Drop receive(Port port, Packet packet);

  // admit.cpp
  Drop admit(Port port, Arrival& arrival);

  // contribute.cpp
  Drop contribute(Arrival& arrival);
  Drop open_slot(Slot& slot, const Arrival& arrival);
  Drop join_slot(const Slot& slot, Arrival& arrival);
  Drop violated(const Arrival& arrival);
  Drop mismatched(const Slot& slot, const Arrival& arrival);
  Drop refuse(const Arrival& arrival, const wire::Mismatch& mismatch);
  void keep(Kept& kept, Arrival& arrival);
  void add(Slot& slot, Arrival& arrival, const Program& program);
  void reduce(Slot& slot, const Arrival& arrival, const Program& program);
  void sum(Slot& slot, const Arrival& arrival, const Program& program);
  void pass_on(Slot& slot, Arrival& arrival, const Program& program, RankSet contributed_before);
  void finish(Slot& slot, const Arrival& arrival);

  // repeat.cpp
  Drop repeat(const Slot& slot, const Arrival& arrival, std::optional<wire::Stamp> stamp);
  Drop want(const Arrival& arrival);
  Drop refuse_again(const Arrival& arrival);
  void note_gap(const Arrival& arrival);

  // tree.cpp
  Drop mismatch_below(const Arrival& arrival);
  Drop take_from_above(Arrival& arrival);
  Drop take_result(Arrival& arrival);
  Drop take_sum(Slot& slot, const Arrival& arrival);
  Drop take_payload(Slot& slot, Arrival& arrival);
  Drop take_done(const Arrival& arrival);
  Drop take_nak(const Arrival& arrival);
  Drop take_waiting(const Arrival& arrival);
  void ask_above(const Slot& slot, const Arrival& arrival, RankSet absent, wire::Stamp stamp);
  void send_up(const Slot& slot, const Arrival& arrival, Rank whose);
  bool send_up_again(const Slot& slot, const Arrival& arrival, RankSet lacked);

  // transmit.cpp
  void send_result(const Slot& slot, const Arrival& arrival, RankSet targets);
  void send_payload(const Arrival& arrival, Rank whose, RankSet targets);
  void send_done(const Slot& slot, const Arrival& arrival, RankSet targets);
  void send_nak(const Arrival& arrival, Seq first, std::uint32_t count);
  void send_waiting(const Slot& slot, const Arrival& arrival, std::optional<wire::Stamp> stamp);
  void send_denial(const Arrival& arrival, Port port);
  void send_refusal(const Arrival& arrival, RankSet targets);
  void mark_as_result(const Slot& slot, const Arrival& arrival, Rank whose);
  Outgoing control(const Arrival& arrival, wire::Kind kind, Seq seq, RankSet targets) const;
  Outgoing upward(const Arrival& arrival, wire::Kind kind, Seq seq, Rank rank) const;
  bool poll(Transmit& out);
  bool fill(Outgoing& entry, Session& session, Transmit& out);
  bool fill_kept(Outgoing& entry, Session& session, Transmit& out);
  void seal(Outgoing& entry, Session& session, Transmit& out);
  void push(const Outgoing& entry);

  // manage.cpp
  void forget_fragments(SessionId id);

  Session* find(SessionId id);
  void report(Event event);

  std::map<SessionId, std::uint32_t> by_id;
  std::deque<std::optional<Session>> sessions;  // a deque: what was polled must not move
  TransmitQueue outgoing;
  std::deque<Event> events;
  Counters counters;
  std::size_t slots_open = 0;
};

}  // namespace cais::switching
