#include "sim/check/model.hpp"

#include <algorithm>
#include <deque>
#include <numeric>

#include "base/check.hpp"
#include "sim/network.hpp"

namespace cais::sim {
namespace {

constexpr std::uint16_t ranks_in_worlds_max = 8;
constexpr Seq first_seq{0xfffffffe};  // the counter wraps in every world
/// Timeouts of one rank after which a run without faults must be over (I7).
constexpr int timeouts_max = 3;

const wire::Keys& keys_of(Epoch epoch) {
  static const wire::Keys first = wire::Keys::of_session(wire::Tags::keyed, wire::Secret{},
                                                         ranks_in_worlds_max, Model::first_epoch);
  static const wire::Keys second = first.at(Model::second_epoch);
  return epoch == Model::first_epoch ? first : second;
}

/// A question's stamp says when it was asked. What is walked is order, not time.
void forget_time(std::vector<std::byte>& packet, const LanePosition& begin) {
  wire::Header header = header_of(packet);
  const std::span<std::byte> payload = std::span(packet).subspan(wire::header_bytes);
  wire::Want want;
  if (header.kind != wire::Kind::want || !wire::parse(payload, want)) return;
  want.stamp = 0;
  const auto timeless = wire::serialize(want);
  std::copy(timeless.begin(), timeless.end(), payload.begin());
  wire::serialize(header, payload, keys_of(header.epoch),
                  std::span(packet).first<wire::header_bytes>(), begin.round_of(header.seq));
}

Tree tree_of(const SmallWorld& world) {
  if (world.leaf_of_rank.empty()) return Tree(world.ranks);
  const std::size_t last = *std::max_element(world.leaf_of_rank.begin(), world.leaf_of_rank.end());
  return Tree(2, last + 1, world.leaf_of_rank);
}

}  // namespace

Model::Model(const SmallWorld& world) : world_(world), tree_(tree_of(world)) {
  for (std::size_t i = 0; i < world.ops.size(); ++i) add_op(world.ops[i], i, false);
  std::vector<const Job*> all;
  for (const auto& job : jobs_) all.push_back(job.get());
  std::vector<std::vector<const Job*>> calls(world.ranks, all);
  if (world.mismatch) {
    add_op(world.ops.back(), world.ops.size() - 1, true);
    calls.back().back() = jobs_.back().get();
  }
  script_ = std::make_unique<Script>(std::uint8_t{1}, world.window, first_seq, std::move(calls));
  find_names(world);
  find_parts();
}

/// Fragments of 16 bytes, the last one shorter. Outputs lie apart from inputs, so that what a state
/// has written can be told from what another one did.
void Model::add_op(const SmallOp& op, std::uint64_t number, bool other) {
  constexpr std::uint32_t fragment_bytes = 16;
  wire::DescriptorSpec spec;
  spec.kind = op.kind;
  spec.reduce_op = wire::reduces(op.kind) ? ReduceOp::sum : ReduceOp::none;
  spec.dtype = other ? DType::int8 : DType::int32;
  if (other && op.kind == OpKind::barrier) spec.kind = OpKind::all_reduce;
  if (other && op.kind == OpKind::barrier) spec.reduce_op = ReduceOp::max;
  spec.ranks = world_.ranks;
  const std::uint32_t per_unit = op.fragments / wire::units_of(op.kind, world_.ranks);
  spec.unit_elements = (per_unit * fragment_bytes - 4) / size_of(spec.dtype);
  spec.fragment_bytes = fragment_bytes;
  Rng rng(number + 1);
  jobs_.push_back(std::make_unique<Job>(make_job(rng, spec, number, tree_)));
  Job& job = *jobs_.back();
  for (std::uint16_t r = 0; r < world_.ranks; ++r) {
    job.recv[r].resize(job.expected[r].size());
    job.submits[r].send = job.inputs[r].data();
    job.submits[r].recv = job.recv[r].data();
  }
}

/// Ranks are alike when every op treats them so: none where units belong to ranks, all but the root
/// where there is one, and not the rank that calls something else. In a tree only those below the
/// same switch: switches keep their names.
void Model::find_names(const SmallWorld& world) {
  std::uint16_t fixed_first = 0;
  std::uint16_t fixed_last = world.mismatch ? 1 : 0;
  for (const SmallOp& op : world.ops) {
    if (wire::has_root(op.kind)) fixed_first = std::max<std::uint16_t>(fixed_first, 1);
    if (wire::units_of(op.kind, world.ranks) > 1) fixed_first = world.ranks;
  }
  std::vector<std::uint16_t> names(world.ranks);
  std::iota(names.begin(), names.end(), std::uint16_t{0});
  if (fixed_first + fixed_last >= world.ranks) {
    names_.push_back(names);
    return;
  }
  const auto stays = [&](std::uint16_t rank) {
    return tree_.leaf_of(Rank(rank)) == tree_.leaf_of(Rank(names[rank]));
  };
  do {
    bool all = true;
    for (std::uint16_t rank = 0; rank < world.ranks; ++rank) all = all && stays(rank);
    if (all) names_.push_back(names);
  } while (std::next_permutation(names.begin() + fixed_first, names.end() - fixed_last));
}

void Model::open_switch(switching::Switch& machine, std::size_t node) const {
  const auto opened = machine.open({.session = session,
                                    .epoch = first_epoch,
                                    .ranks = world_.ranks,
                                    .lanes = 1,
                                    .lanes_served = 1,
                                    .window_fragments = world_.window,
                                    .payload_bytes_max = 16,
                                    .keys = keys_of(first_epoch),
                                    .first_seq = first_seq,
                                    .place = tree_.place(node)});
  CAIS_CHECK(opened.ok());
  for (const auto& job : jobs_) CAIS_CHECK(machine.define(session, job->descriptor).ok());
  if (const auto parent = tree_.node(node).parent) {
    CAIS_CHECK(machine.bind_parent(session, switching::Port(endpoint_of(*parent))).ok());
  }
  for (const std::size_t child : tree_.switches_below(node)) {
    const Rank name = least(tree_.node(child).members);
    CAIS_CHECK(machine.bind(session, name, switching::Port(endpoint_of(child))).ok());
  }
  for (std::uint16_t r = 0; r < world_.ranks; ++r) {
    if (tree_.leaf_of(Rank(r)) != node) continue;
    CAIS_CHECK(machine.bind(session, Rank(r), switching::Port(r)).ok());
  }
}

State Model::first() {
  State state(*script_, tree_);
  state.switches.resize(tree_.nodes().size());
  for (std::size_t node = 0; node < state.switches.size(); ++node) {
    open_switch(state.switches[node], node);
  }
  state.placed.resize(state.switches.size());
  state.phases.resize(world_.ranks);
  state.clocks.resize(world_.ranks);
  state.sums.resize(names_.size());
  state.written.resize(world_.ranks);
  for (std::uint16_t r = 0; r < world_.ranks; ++r) {
    constexpr Duration rto = std::chrono::milliseconds(1);
    state.agents.emplace_back(agent::Config{.session = session,
                                            .epoch = first_epoch,
                                            .rank = Rank(r),
                                            .ranks = world_.ranks,
                                            .lanes = 1,
                                            .window_fragments = world_.window,
                                            .keys = keys_of(first_epoch),
                                            .first_seq = first_seq,
                                            .rto_initial = rto,
                                            .rto_min = rto,
                                            .rto_max = rto,
                                            .retains = world_.epochs});
  }
  for (std::uint16_t r = 0; r < world_.ranks; ++r) {
    blank_outputs(Rank(r));
    for (const Job* job : script_->calls(Rank(r))) state.agents[r].submit(job->submits[r]);
    poll_agent(state, Rank(r));
    check_outputs(state, Rank(r));
  }
  return state;
}

void Model::actions(const State& state, std::vector<Action>& out) const {
  using Kind = Action::Kind;
  out.clear();
  const auto add = [&](Kind kind, std::uint32_t which) {
    if (possible(state, {kind, which})) out.push_back({kind, which});
  };
  for (std::uint32_t packet = 0; packet < state.sent.end(); ++packet) add(Kind::packet, packet);
  for (std::uint32_t rank = 0; rank < world_.ranks; ++rank) {
    for (const Kind kind : {Kind::timeout, Kind::fence, Kind::begin}) add(kind, rank);
  }
  for (std::uint32_t node = 0; node < state.switches.size(); ++node) {
    add(Kind::crash, node);
    add(Kind::place, node);
  }
}

bool Model::possible(const State& state, const Action& action) const {
  using Phase = State::Phase;
  const auto& phases = state.phases;
  const auto& placed = state.placed;
  const bool all_placed = std::find(placed.begin(), placed.end(), false) == placed.end();
  switch (action.kind) {
    case Action::Kind::packet:
      return state.sent.has(action.which);
    case Action::Kind::timeout:
      return state.agents[action.which].deadline() != never;
    case Action::Kind::crash:
      return world_.epochs && !state.crashed && !any_placed(state);
    case Action::Kind::fence:
      return world_.epochs && phases[action.which] == Phase::first;
    case Action::Kind::place:
      return world_.epochs && !placed[action.which] &&
             std::find(phases.begin(), phases.end(), Phase::first) == phases.end();
    case Action::Kind::begin:
      return all_placed && phases[action.which] == Phase::fenced;
  }
  return false;
}

void Model::apply(State& state, const Action& action) {
  fresh_.clear();
  if (action.kind == Action::Kind::packet) {
    const PacketKind packet = packets_[action.which];
    return deliver(state, packet);
  }
  if (action.kind == Action::Kind::crash) {
    state.switches[action.which] = switching::Switch();
    state.crashed = action.which;
    return;
  }
  if (action.kind == Action::Kind::place) return place(state, action.which);
  const Rank rank(static_cast<std::uint16_t>(action.which));
  agent::Agent& agent = state.agents[rank.value];
  prepare_outputs(state, rank);
  if (action.kind == Action::Kind::timeout) {
    state.clocks[rank.value] = std::max(state.clocks[rank.value], agent.deadline());
    agent.timeout(state.clocks[rank.value]);
  } else if (action.kind == Action::Kind::fence) {
    agent.fence();
    state.phases[rank.value] = State::Phase::fenced;
  } else {
    if (auto resumed = agent.resume(second_epoch, {&state.from, 1}); !resumed) {
      return state.oracle.complain("P4: " + resumed.error().message);
    }
    state.phases[rank.value] = State::Phase::second;
  }
  poll_agent(state, rank);
  check_outputs(state, rank);
}

void Model::deliver(State& state, const PacketKind& packet) {
  if (!is_rank(packet.to)) return deliver_to_switch(state, packet);
  const Rank rank(static_cast<std::uint16_t>(packet.to));
  prepare_outputs(state, rank);
  state.agents[rank.value].receive(state.clocks[rank.value], packet.bytes);
  poll_agent(state, rank);
  check_outputs(state, rank);
}

void Model::deliver_to_switch(State& state, const PacketKind& packet) {
  const std::size_t node = node_of(packet.to);
  switching::Switch& machine = state.switches[node];
  const wire::Header header = header_of(packet.bytes);
  const bool contributes = header.kind == wire::Kind::contribution;
  const bool was_there =
      contributes && state.oracle.contributed(node, header.rank, header.lane, header.seq);
  const switching::Drop drop =
      machine.receive(switching::Port(packet.from), Packet{packet.bytes, {}});
  if (drop == switching::Drop::none && contributes && !was_there) {
    state.oracle.switch_takes(node, header);
  }
  if (drop == switching::Drop::none && !contributes) state.oracle.switch_hears(node, header);
  const bool of_an_epoch =
      drop == switching::Drop::wrong_epoch || drop == switching::Drop::unknown_session;
  if (drop != switching::Drop::none && drop != switching::Drop::stale_seq &&
      !(of_an_epoch && world_.epochs) && !(drop == switching::Drop::mismatch && world_.mismatch)) {
    state.oracle.complain(std::string("a switch refuses what was sent to it: ") +
                          switching::to_string(drop) + ": " + wire::to_string(header));
  }
  poll_switch(state, node);
  if (!state.placed[node] && (state.crashed == node || any_placed(state))) return;
  if (machine.slots_in_use() != state.oracle.open_slots(node, 1)) {
    state.oracle.complain("I5: " + std::to_string(machine.slots_in_use()) +
                          " slots are in use, and " +
                          std::to_string(state.oracle.open_slots(node, 1)) + " should be");
  }
}

void Model::poll_agent(State& state, Rank rank) {
  agent::Agent& agent = state.agents[rank.value];
  agent::Transmit out;
  while (agent.poll_transmit(state.clocks[rank.value], out)) {
    std::vector<std::byte> packet = joined(out.header, out.payload, out.padding);
    const bool again = state.phases[rank.value] == State::Phase::second;
    forget_time(packet, LanePosition(again ? state.from : first_seq));
    state.oracle.rank_sends(rank, header_of(packet), std::span(packet).subspan(wire::header_bytes));
    send(state, rank.value, endpoint_of(tree_.leaf_of(rank)), packet);
  }
  check_outputs(state, rank);
  agent::Event event;
  while (agent.poll_event(event)) {
    if (const auto* done = std::get_if<agent::Done>(&event)) {
      state.oracle.rank_is_done(rank, done->op);
      check_done(state, rank, done->op);
    } else if (const auto* told = std::get_if<agent::Mismatched>(&event)) {
      state.oracle.rank_is_refused(rank, *told, script_->calls(rank).size());
    }
  }
}

void Model::poll_switch(State& state, std::size_t node) {
  switching::Transmit out;
  while (state.switches[node].poll_transmit(out)) {
    std::vector<std::byte> packet = joined(out.header, out.payload);
    if (header_of(packet).kind == wire::Kind::no_session) continue;  // only informs (P16)
    for (const switching::Port to : out.ports) {
      tell_oracle(state, node, to.value, packet);
      send(state, endpoint_of(node), to.value, packet);
    }
  }
  switching::Event event;
  while (state.switches[node].poll_event(event)) {
    if (const auto* bad = std::get_if<switching::ViolationEvent>(&event)) {
      state.oracle.complain("P6: rank " + std::to_string(bad->rank.value) +
                            " is said to break its window at seq " +
                            std::to_string(bad->seq.value));
    }
  }
}

void Model::tell_oracle(State& state, std::size_t node, Endpoint to,
                        std::span<const std::byte> packet) const {
  const wire::Header header = header_of(packet);
  const std::span<const std::byte> payload = packet.subspan(wire::header_bytes);
  if (is_rank(to)) {
    state.oracle.switch_sends(node, Rank(static_cast<std::uint16_t>(to)), header, payload);
  } else if (tree_.node(node).parent == node_of(to)) {
    state.oracle.switch_sends_up(node, header, payload);
  } else {
    state.oracle.switch_sends_down(node, node_of(to), header, payload);
  }
}

End Model::ends(State state, Sent so_far) {
  std::deque<std::uint32_t> under_way;
  for (std::uint32_t packet = 0; so_far == Sent::arrives && packet < state.sent.end(); ++packet) {
    if (state.sent.has(packet)) under_way.push_back(packet);
  }
  std::vector<int> timeouts(world_.ranks);
  while (state.oracle.complaint().empty() && !state.oracle.over()) {
    Action next{};
    if (changes_epoch(state, next)) {
      apply(state, next);
    } else if (!under_way.empty()) {
      const std::uint32_t packet = under_way.front();
      under_way.pop_front();
      apply(state, {Action::Kind::packet, packet});
    } else {
      std::uint32_t first = 0;
      for (std::uint32_t r = 1; r < world_.ranks; ++r) {
        const bool waits = state.agents[r].deadline() != never;
        if (waits && (state.agents[first].deadline() == never || timeouts[r] < timeouts[first])) {
          first = r;
        }
      }
      if (state.agents[first].deadline() == never || ++timeouts[first] > timeouts_max) {
        state.oracle.complain("I7: without faults it does not end");
        break;
      }
      apply(state, {Action::Kind::timeout, first});
    }
    under_way.insert(under_way.end(), fresh_.begin(), fresh_.end());
  }
  return {*std::max_element(timeouts.begin(), timeouts.end()), state.oracle.complaint()};
}

std::string Model::to_string(const Action& action) const {
  const std::string rank = "rank " + std::to_string(action.which);
  const std::string node = "switch " + std::to_string(action.which);
  switch (action.kind) {
    case Action::Kind::packet:
      break;
    case Action::Kind::timeout:
      return "timer of " + rank + " runs out";
    case Action::Kind::crash:
      return node + " loses all that it has";
    case Action::Kind::fence:
      return rank + " is fenced";
    case Action::Kind::place:
      return node + " begins the second epoch";
    case Action::Kind::begin:
      return rank + " begins the second epoch";
  }
  const PacketKind& packet = packets_[action.which];
  return name_of(packet.to) + " gets from " + name_of(packet.from) + " " +
         wire::to_string(header_of(packet.bytes));
}

std::string Model::name_of(Endpoint endpoint) const {
  return is_rank(endpoint) ? "rank " + std::to_string(endpoint)
                           : "switch " + std::to_string(node_of(endpoint));
}

}  // namespace cais::sim
