#include "core/agent/agent.hpp"

#include <algorithm>
#include <bit>

#include "base/first_bits.hpp"
#include "core/agent/state.hpp"

namespace cais::agent {

LaneState::LaneState(const Config& config, Lane which)
    : lane(which),
      first(config.first_seq),
      base(config.first_seq),
      position(config.first_seq),
      next(config.first_seq),
      settled_end(config.first_seq),
      window((config.retains ? 2 : 1) * std::size_t{config.window_fragments}),
      rtt(config.rto_initial, config.rto_min, config.rto_max),
      recover_from(config.first_seq),
      recover_end(config.first_seq) {}

Agent::State::State(const Config& c)
    : config(c), congestion(c.window_fragments, c.packets_initial) {
  CAIS_CHECK(c.lanes > 0 && c.ranks > c.rank.value && c.ranks <= ranks_max);
  CAIS_CHECK(std::has_single_bit(c.window_fragments));  // a fragment's place is a mask
  for (std::uint8_t l = 0; l < c.lanes; ++l) lanes.emplace_back(c, Lane(l));
}

Agent::Agent(const Config& config) : state_(std::make_unique<State>(config)) {}
Agent::Agent(const Agent& other) : state_(std::make_unique<State>(*other.state_)) {}
Agent& Agent::operator=(const Agent& other) {
  if (this != &other) state_ = std::make_unique<State>(*other.state_);
  return *this;
}
Agent::~Agent() = default;

/// Small ops take the lanes in turn. An op on all lanes begins with the first: so the units of a
/// reduce_scatter meet at the hosts of the ranks that own them.
void Agent::submit(const Submit& op) {
  State& state = *state_;
  if (state.refused) return;
  CAIS_CHECK(op.plan.ranks == state.config.ranks && op.plan.lanes <= state.config.lanes);
  const OpNumber number = state.ops_first + state.ops.size();
  state.ops.push_back(Op{op, op.plan.fragments(), op.plan.fragments(), {}});
  const std::size_t lanes = state.lanes.size();
  const std::size_t first = op.plan.lanes == lanes ? 0 : number % lanes;
  for (std::uint8_t i = 0; i < op.plan.lanes; ++i) {
    const nir::FragmentRange range = op.plan.dealt_to(i);
    if (range.count() == 0) continue;
    LaneState& lane = state.lanes[(first + i) % lanes];
    if (lane.waiting == 0 && lane.shares.empty()) lane.clocked = false;
    lane.shares.push_back({number, range});
  }
}

void Agent::receive(Instant now, std::span<const std::byte> packet) {
  Counters& counters = state_->counters;
  ++counters.received;
  switch (state_->receive(now, packet)) {
    case State::Outcome::accepted:
      ++counters.accepted;
      break;
    case State::Outcome::malformed:
      ++counters.dropped_malformed;
      break;
    case State::Outcome::wrong_tag:
      ++counters.dropped_tag;
      break;
    case State::Outcome::foreign:
      ++counters.dropped_foreign;
      break;
    case State::Outcome::stale:
      ++counters.dropped_stale;
      break;
  }
}

bool Agent::poll_transmit(Instant now, Transmit& out) { return state_->poll(now, out); }

bool Agent::poll_event(Event& out) {
  if (state_->events.empty()) return false;
  out = state_->events.front();
  state_->events.pop_front();
  return true;
}

void Agent::fence() { state_->fenced = true; }

Instant Agent::deadline() const {
  if (state_->fenced) return never;
  Instant first = never;
  for (const LaneState& lane : state_->lanes) first = std::min(first, lane.deadline);
  return first;
}

void Agent::timeout(Instant now) {
  if (state_->fenced) return;
  for (LaneState& lane : state_->lanes) {
    if (lane.deadline <= now) state_->timeout(now, lane);
  }
}

const Counters& Agent::counters() const { return state_->counters; }
Duration Agent::smoothed_rtt() const {
  Duration slowest{0};
  for (const LaneState& lane : state_->lanes) slowest = std::max(slowest, lane.rtt.smoothed());
  return slowest;
}
bool Agent::idle() const { return state_->all_done(); }

std::optional<std::uint64_t> Agent::waits_for(Lane which) const {
  const LaneState& lane = state_->lanes[which.value];
  if (lane.waiting == 0) return std::nullopt;
  if (lane.in_window(lane.held_up_at) &&
      lane.at(lane.held_up_at).state == Fragment::State::waiting && lane.held_up_by != 0) {
    return lane.held_up_by;
  }
  // The answer to the first repeat is due when the timer has run out again.
  return lane.backoff >= 2 ? std::optional(std::uint64_t{0}) : std::nullopt;
}

std::uint64_t owed(const nir::Plan& plan, Rank self, std::uint32_t unit) {
  if (!plan.receives_payload(self, unit)) return 0;
  const std::uint64_t own = 1ull << self.value;
  switch (plan.combine) {
    case nir::Combine::reduce:
      return 1;
    case nir::Combine::concat:
      return first_bits(plan.ranks) & ~own;
    case nir::Combine::route:
      return (1ull << plan.root) & ~own;
  }
  return 0;
}

}  // namespace cais::agent
