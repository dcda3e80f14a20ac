// P13: which packets may touch the state of a session.
#include "core/switching/state.hpp"

namespace cais::switching {

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
  if (!contains(session.bound, header.rank) || session.ports[header.rank.value] != port)
    return Drop::wrong_port;
  if (header.kind != wire::Kind::contribution && header.kind != wire::Kind::want) {
    return Drop::wrong_kind;
  }
  if (header.level != 0) return Drop::wrong_kind;
  // The tag comes last: it alone reads the payload.
  if (!wire::tag_is_right(bytes, session.config.tag_seed)) return Drop::wrong_tag;

  arrival.payload = bytes.subspan(wire::header_bytes);
  arrival.session = &session;
  arrival.session_index = found->second;
  arrival.lane = lane;
  return Drop::none;
}

}  // namespace cais::switching
