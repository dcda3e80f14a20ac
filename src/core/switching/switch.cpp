#include "core/switching/switch.hpp"

#include "core/switching/state.hpp"

namespace cais::switching {

const char* to_string(Drop drop) {
  switch (drop) {
    case Drop::none:
      return "none";
    case Drop::malformed:
      return "malformed";
    case Drop::wrong_tag:
      return "wrong_tag";
    case Drop::unknown_session:
      return "unknown_session";
    case Drop::wrong_epoch:
      return "wrong_epoch";
    case Drop::wrong_lane:
      return "wrong_lane";
    case Drop::wrong_port:
      return "wrong_port";
    case Drop::rank_out_of_range:
      return "rank_out_of_range";
    case Drop::wrong_kind:
      return "wrong_kind";
    case Drop::unknown_descriptor:
      return "unknown_descriptor";
    case Drop::bad_length:
      return "bad_length";
    case Drop::wrong_place:
      return "wrong_place";
    case Drop::stale_seq:
      return "stale_seq";
    case Drop::violation:
      return "violation";
    case Drop::mismatch:
      return "mismatch";
    case Drop::count_:
      break;
  }
  return "unknown";
}

Switch::Switch() : state_(std::make_unique<State>()) {}
Switch::Switch(const Switch& other) : state_(std::make_unique<State>(*other.state_)) {}
Switch& Switch::operator=(const Switch& other) {
  if (this != &other) state_ = std::make_unique<State>(*other.state_);
  return *this;
}
Switch::~Switch() = default;

Drop Switch::receive(Port port, Packet packet) {
  ++state_->counters.received;
  const Drop drop = state_->receive(port, std::move(packet));
  ++(drop == Drop::none ? state_->counters.accepted
                        : state_->counters.dropped[static_cast<std::size_t>(drop)]);
  return drop;
}

bool Switch::poll_transmit(Transmit& out) { return state_->poll(out); }

bool Switch::poll_event(Event& out) {
  if (state_->events.empty()) return false;
  out = state_->events.front();
  state_->events.pop_front();
  return true;
}

const Counters& Switch::counters() const { return state_->counters; }
std::size_t Switch::slots_in_use() const { return state_->slots_open; }

Drop Switch::State::receive(Port port, Packet packet) {
  Arrival arrival;
  arrival.packet = std::move(packet);
  if (const Drop drop = admit(port, arrival); drop != Drop::none) return drop;
  if (arrival.session->refusal) return arrival.from_above ? Drop::mismatch : refuse_again(arrival);
  if (arrival.from_above) return take_from_above(arrival);
  if (arrival.header.kind == wire::Kind::mismatch) return mismatch_below(arrival);
  return arrival.header.kind == wire::Kind::want ? want(arrival) : contribute(arrival);
}

Session* Switch::State::find(SessionId id) {
  const auto found = by_id.find(id);
  return found == by_id.end() ? nullptr : &*sessions[found->second];
}

void Switch::State::report(Event event) {
  if (events.size() < events_max) events.push_back(std::move(event));
}

}  // namespace cais::switching
