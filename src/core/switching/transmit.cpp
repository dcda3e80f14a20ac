// What the switch sends: entries are queued as packets are taken, and become packets when polled.
#include <algorithm>
#include <bit>

#include "core/switching/state.hpp"

namespace cais::switching {

bool TransmitQueue::push(const Outgoing& entry) {
  if (head_ == entries_.size() || entries_.size() == transmits_max) {
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(head_));
    base_ += head_;
    head_ = 0;
  }
  if (entries_.size() == transmits_max) return false;
  entries_.push_back(entry);
  return true;
}

Outgoing* TransmitQueue::waiting(Position position) {
  if (position < base_ + head_ || position >= base_ + entries_.size()) return nullptr;
  return &entries_[position - base_];
}

void TransmitQueue::forget(std::uint32_t session) {
  for (std::size_t i = head_; i < entries_.size(); ++i) {
    if (entries_[i].session == session) entries_[i].content = Outgoing::Content::nothing;
  }
}

namespace {

constexpr std::uint32_t no_session = ~std::uint32_t{0};  // Outgoing::session of a denial

}  // namespace

void Outgoing::attach(std::span<const std::byte> what) {
  content = Content::note;
  std::copy(what.begin(), what.end(), note.begin());
  note_bytes = static_cast<std::uint8_t>(what.size());
}

Outgoing Switch::State::control(const Arrival& arrival, wire::Kind kind, Seq seq,
                                RankSet targets) const {
  Outgoing entry;
  entry.content = Outgoing::Content::header;
  entry.targets = targets;
  entry.session = arrival.session_index;
  entry.header.session = arrival.session->config.session;
  entry.header.epoch = arrival.session->config.epoch;
  entry.header.lane = arrival.lane->lane;
  entry.header.seq = seq;
  entry.header.kind = kind;
  entry.header.descriptor = arrival.header.descriptor;
  return entry;
}

/// To the parent, in the name of a rank below.
Outgoing Switch::State::upward(const Arrival& arrival, wire::Kind kind, Seq seq, Rank rank) const {
  Outgoing entry = control(arrival, kind, seq, 0);
  entry.up = true;
  entry.header.rank = rank;
  entry.header.level = arrival.session->config.place.level;
  return entry;
}

void Switch::State::push(const Outgoing& entry) {
  if (!outgoing.push(entry)) ++counters.transmits_lost;
}

void Switch::State::send_result(const Slot& slot, const Arrival& arrival, RankSet targets) {
  Outgoing entry = control(arrival, wire::Kind::result, slot.seq, targets);
  entry.content = Outgoing::Content::result;
  push(entry);
}

void Switch::State::send_payload(const Arrival& arrival, Rank whose, RankSet targets) {
  Outgoing entry = control(arrival, wire::Kind::result, arrival.seq(), targets);
  entry.content = Outgoing::Content::payload;
  entry.header.rank = whose;
  push(entry);
}

/// Consecutive fragments that are done for the same ranks share a packet, as long as it waits.
void Switch::State::send_done(const Slot& slot, const Arrival& arrival, RankSet targets) {
  if (targets == 0) return;
  const auto list =
      std::has_single_bit(targets) ? std::countr_zero(targets) : int{arrival.session->config.ranks};
  std::uint64_t& at = arrival.lane->done_at[static_cast<std::size_t>(list)];
  if (Outgoing* last = outgoing.waiting(at);
      last != nullptr && last->targets == targets && last->session == arrival.session_index &&
      last->header.kind == wire::Kind::done && last->header.descriptor == slot.descriptor &&
      last->header.lane == arrival.lane->lane &&
      last->header.seq + last->header.chunk == slot.seq) {
    ++last->header.chunk;
    return;
  }
  Outgoing entry = control(arrival, wire::Kind::done, slot.seq, targets);
  entry.header.chunk = 1;
  push(entry);
  at = outgoing.last();
}

void Switch::State::send_nak(const Arrival& arrival, Seq first, std::uint32_t count) {
  Outgoing entry = control(arrival, wire::Kind::nak, first, only(arrival.child));
  entry.header.chunk = count;
  push(entry);
  ++counters.naks_sent;
}

/// P16: the switch lives, and these ranks have not contributed. Who asked stands in the header, so
/// that the answer finds its way down a tree.
void Switch::State::send_waiting(const Slot& slot, const Arrival& arrival,
                                 std::optional<wire::Stamp> stamp) {
  Outgoing entry = control(arrival, wire::Kind::waiting, slot.seq, only(arrival.child));
  entry.header.rank = arrival.rank();
  wire::name_ranks(entry.header, arrival.session->members & ~slot.contributed);
  if (stamp) entry.attach(wire::serialize(*stamp));
  push(entry);
}

void Switch::State::send_refusal(const Arrival& arrival, RankSet targets) {
  Outgoing entry = control(arrival, wire::Kind::mismatch, arrival.session->refusal->seq, targets);
  entry.attach(arrival.session->refusal->payload);
  entry.header.lane = arrival.session->refusal->lane;
  entry.header.descriptor = arrival.session->refusal->descriptor;
  push(entry);
}

void Switch::State::send_denial(const Arrival& arrival, Port port) {
  Outgoing entry;
  entry.content = Outgoing::Content::denial;
  entry.targets = 1;
  entry.session = no_session;
  entry.port = port;
  entry.bytes = wire::deny(arrival.packet.bytes.first<wire::header_bytes>());
  push(entry);
}

/// The packet that the slot keeps of `whose` becomes a result where it lies.
void Switch::State::mark_as_result(const Slot& slot, const Arrival& arrival, Rank whose) {
  LaneState& lane = *arrival.lane;
  std::byte* packet = lane.bytes(lane.kept(slot, whose));
  wire::Header header = arrival.header;
  header.kind = wire::Kind::result;
  header.rank = whose;
  header.level = 0;
  header.chunk = slot.chunk;
  header.offset = slot.offset;
  header.flags = slot.state == Slot::State::finished ? wire::flag_finished : std::uint8_t{0};
  const std::size_t bytes = arrival.session->programs[slot.program].plan.fragment_bytes;
  wire::serialize(header, {packet + wire::header_bytes, bytes}, arrival.session->config.keys,
                  std::span<std::byte, wire::header_bytes>(packet, wire::header_bytes),
                  lane.position.round_of(header.seq));
}

/// Header and payload of an entry; false when its slot has been recycled.
bool Switch::State::fill(Outgoing& entry, Session& session, Transmit& out) {
  if (entry.content == Outgoing::Content::result || entry.content == Outgoing::Content::payload) {
    return fill_kept(entry, session, out);
  }
  out.payload = std::span<const std::byte>(entry.note).first(entry.note_bytes);
  seal(entry, session, out);
  return true;
}

void Switch::State::seal(Outgoing& entry, Session& session, Transmit& out) {
  const LanePosition& position = session.lane(entry.header.lane)->position;
  wire::serialize(entry.header, out.payload, session.config.keys, entry.bytes,
                  position.round_of(entry.header.seq));
  out.header = entry.bytes;
}

/// What a slot keeps has the header of a result; on the way up it gets another one, and is wanted
/// only as long as the slot is open.
bool Switch::State::fill_kept(Outgoing& entry, Session& session, Transmit& out) {
  LaneState& lane = *session.lane(entry.header.lane);
  Slot& slot = lane.slot(entry.header.seq);
  if (!slot.holds(entry.header.seq) || (entry.up && slot.state != Slot::State::open)) return false;
  const Program& program = session.programs[slot.program];
  const std::byte* packet = nullptr;
  std::size_t bytes = program.plan.fragment_bytes;
  if (entry.content == Outgoing::Content::result) {
    if (slot.result == CellPool::none) return false;
    packet = lane.cells.at(slot.result);
    if (entry.up && slot.final == 0) bytes = program.output_bytes;
  } else {
    const Kept& kept = lane.kept(slot, entry.header.rank);
    if (kept.empty()) return false;
    packet = lane.bytes(kept);
  }
  out.header = {packet, wire::header_bytes};
  out.payload = {packet + wire::header_bytes, bytes};
  if (entry.up) seal(entry, session, out);
  return true;
}

/// Children that follow each other in the list of ports are served by one Transmit.
bool Switch::State::poll(Transmit& out) {
  for (Outgoing* entry = outgoing.front(); entry != nullptr; entry = outgoing.front()) {
    if (entry->content == Outgoing::Content::nothing || (entry->targets == 0 && !entry->up)) {
      outgoing.pop();
      continue;
    }
    if (entry->content == Outgoing::Content::denial) {
      out = {entry->bytes, {}, {&entry->port, 1}};
      outgoing.pop();
      return true;
    }
    Session& session = *sessions[entry->session];
    if ((entry->up && !session.parent) || !fill(*entry, session, out)) {
      outgoing.pop();
      continue;
    }
    if (entry->up) {
      out.ports = {&*session.parent, 1};
      outgoing.pop();
      return true;
    }
    const int first = std::countr_zero(entry->targets);
    const int run = std::countr_one(entry->targets >> first);
    out.ports = std::span<const Port>(session.ports)
                    .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(run));
    entry->targets &= ~(all_of(static_cast<std::uint16_t>(run)) << first);
    if (entry->targets == 0) outgoing.pop();
    return true;
  }
  return false;
}

}  // namespace cais::switching
