// P13: which packets may touch the state of a session.
#include "core/switching/state.hpp"

namespace cais::switching {
namespace {

/// Whether only a parent sends this (P9). A mismatch travels both ways; up it has a level.
bool comes_down(const wire::Header& header) {
  switch (header.kind) {
    case wire::Kind::result:
    case wire::Kind::done:
    case wire::Kind::nak:
    case wire::Kind::waiting:
      return true;
    case wire::Kind::mismatch:
      return header.level == 0;
    case wire::Kind::contribution:
    case wire::Kind::want:
    case wire::Kind::no_session:  // it has no key; whoever manages the session hears of it
                                  // otherwise
      break;
  }
  return false;
}

Drop admit_from_above(Port port, const Session& session, Arrival& arrival) {
  if (session.parent != port) return Drop::wrong_port;
  if (arrival.header.level != 0) return Drop::wrong_kind;
  arrival.from_above = true;
  return Drop::none;
}

Drop admit_from_below(Port port, const Session& session, Arrival& arrival) {
  const wire::Header& header = arrival.header;
  if (!contains(session.members, header.rank)) return Drop::rank_out_of_range;
  const Child& child = session.child_of[header.rank.value];
  arrival.child = child.name;
  arrival.below = child.below;
  if (!contains(session.bound, arrival.child) || session.ports[arrival.child.value] != port) {
    return Drop::wrong_port;
  }
  const bool speaks = header.kind == wire::Kind::contribution || header.kind == wire::Kind::want ||
                      (header.kind == wire::Kind::mismatch && session.config.place.level > 1);
  if (!speaks || header.level + 1 != session.config.place.level) return Drop::wrong_kind;
  return Drop::none;
}

}  // namespace

Drop Switch::State::admit(Port port, Arrival& arrival) {
  wire::Header& header = arrival.header;
  const std::span<const std::byte> bytes = arrival.packet.bytes;
  if (wire::parse(bytes, header) != wire::ParseError::none) return Drop::malformed;

  const auto found = by_id.find(header.session);
  if (found == by_id.end()) {
    // P16: only a question is answered, and by less than it is long itself (P13).
    if (header.kind == wire::Kind::want && bytes.size() == wire::header_bytes + wire::want_bytes) {
      send_denial(arrival, port);
    }
    return Drop::unknown_session;
  }
  Session& session = *sessions[found->second];
  if (header.epoch != session.config.epoch || session.fenced) return Drop::wrong_epoch;
  LaneState* lane = session.lane(header.lane);
  if (lane == nullptr) return Drop::wrong_lane;
  if (header.rank.value >= session.config.ranks) return Drop::rank_out_of_range;
  const Drop drop = session.has_parent() && comes_down(header)
                        ? admit_from_above(port, session, arrival)
                        : admit_from_below(port, session, arrival);
  if (drop != Drop::none) return drop;
  // The tag comes last: it alone reads the payload.
  if (!wire::tag_is_right(bytes, session.config.keys, lane->position.round_of(header.seq))) {
    return Drop::wrong_tag;
  }

  arrival.payload = bytes.subspan(wire::header_bytes);
  arrival.session = &session;
  arrival.session_index = found->second;
  arrival.lane = lane;
  return Drop::none;
}

}  // namespace cais::switching
