#include "sim/check/model.hpp"

#include <algorithm>
#include <deque>
#include <numeric>

#include "base/check.hpp"
#include "base/fingerprint.hpp"
#include "sim/network.hpp"

namespace cais::sim {
namespace {

constexpr SessionId session{1};
constexpr Epoch first_epoch{1};
constexpr Epoch second_epoch{2};
constexpr std::uint64_t tag_seed = 77;
constexpr Seq first_seq{0xfffffffe};  // the counter wraps in every world
/// Timeouts of one rank after which a run without faults must be over (I7).
constexpr int timeouts_max = 8;

wire::Header header_of(std::span<const std::byte> packet) {
  wire::Header header;
  CAIS_CHECK(wire::parse(packet, header) == wire::ParseError::none);
  return header;
}

/// A question's stamp says when it was asked. What is walked is order, not time.
void forget_time(std::vector<std::byte>& packet) {
  wire::Header header = header_of(packet);
  const std::span<std::byte> payload = std::span(packet).subspan(wire::header_bytes);
  wire::Want want;
  if (header.kind != wire::Kind::want || !wire::parse(payload, want)) return;
  want.stamp = 0;
  const auto timeless = wire::serialize(want);
  std::copy(timeless.begin(), timeless.end(), payload.begin());
  wire::serialize(header, payload, tag_seed, std::span(packet).first<wire::header_bytes>());
}

}  // namespace

Model::Model(const SmallWorld& world) : world_(world) {
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
  jobs_.push_back(std::make_unique<Job>(make_job(rng, spec, number)));
  Job& job = *jobs_.back();
  for (std::uint16_t r = 0; r < world_.ranks; ++r) {
    job.recv[r].resize(job.expected[r].size());
    job.submits[r].send = job.inputs[r].data();
    job.submits[r].recv = job.recv[r].data();
  }
}

/// Ranks are alike when every op treats them so: none where units belong to ranks, all but the root
/// where there is one, and not the rank that calls something else.
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
  do {
    names_.push_back(names);
  } while (std::next_permutation(names.begin() + fixed_first, names.end() - fixed_last));
}

void Model::open(switching::Switch& machine) const {
  const auto opened = machine.open({.session = session,
                                    .epoch = first_epoch,
                                    .ranks = world_.ranks,
                                    .lanes = 1,
                                    .lanes_served = 1,
                                    .window_fragments = world_.window,
                                    .payload_bytes_max = 16,
                                    .tag_seed = tag_seed,
                                    .first_seq = first_seq});
  CAIS_CHECK(opened.ok());
  for (const auto& job : jobs_) CAIS_CHECK(machine.define(session, job->descriptor).ok());
  for (std::uint16_t r = 0; r < world_.ranks; ++r) {
    CAIS_CHECK(machine.bind(session, Rank(r), switching::Port(r)).ok());
  }
}

State Model::first() {
  State state(*script_);
  open(state.machine);
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
                                            .tag_seed = tag_seed,
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
  add(Kind::crash, 0);
  add(Kind::place, 0);
}

bool Model::possible(const State& state, const Action& action) const {
  using Phase = State::Phase;
  const auto& phases = state.phases;
  switch (action.kind) {
    case Action::Kind::packet:
      return state.sent.has(action.which);
    case Action::Kind::timeout:
      return state.agents[action.which].deadline() != never;
    case Action::Kind::crash:
      return world_.epochs && !state.crashed && !state.placed;
    case Action::Kind::fence:
      return world_.epochs && phases[action.which] == Phase::first;
    case Action::Kind::place:
      return world_.epochs && !state.placed &&
             std::find(phases.begin(), phases.end(), Phase::first) == phases.end();
    case Action::Kind::begin:
      return state.placed && phases[action.which] == Phase::fenced;
  }
  return false;
}

/// What a change of the epoch that has begun needs next.
bool Model::changes_epoch(const State& state, Action& next) const {
  const bool fenced = std::find(state.phases.begin(), state.phases.end(), State::Phase::fenced) !=
                      state.phases.end();
  if (!fenced && !state.crashed) return false;
  std::vector<Action> all;
  actions(state, all);
  for (const Action& action : all) {
    if (action.kind < Action::Kind::fence) continue;
    next = action;
    return true;
  }
  return false;
}

void Model::apply(State& state, const Action& action) {
  fresh_.clear();
  if (action.kind == Action::Kind::packet) {
    const PacketKind packet = packets_[action.which];
    return deliver(state, packet);
  }
  if (action.kind == Action::Kind::crash) return crash(state);
  if (action.kind == Action::Kind::place) return place(state);
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

void Model::crash(State& state) {
  state.machine = switching::Switch();
  state.crashed = true;
}

/// Where the last of the ranks stands.
void Model::place(State& state) {
  state.from = state.agents[0].first_unsettled(Lane(0));
  for (const agent::Agent& agent : state.agents) {
    const Seq of_rank = agent.first_unsettled(Lane(0));
    if (before(of_rank, state.from)) state.from = of_rank;
  }
  if (state.crashed) open(state.machine);
  auto begun = state.machine.fence(session, second_epoch);
  if (begun) begun = state.machine.resume(session, second_epoch, 1, {&state.from, 1});
  if (!begun) return state.oracle.complain("P15: " + begun.error().message);
  state.placed = true;
  state.oracle.begins(Lane(0), state.from);
}

void Model::deliver(State& state, const PacketKind& packet) {
  if (!packet.up) {
    prepare_outputs(state, packet.rank);
    state.agents[packet.rank.value].receive(state.clocks[packet.rank.value], packet.bytes);
    poll_agent(state, packet.rank);
    return check_outputs(state, packet.rank);
  }
  const wire::Header header = header_of(packet.bytes);
  const bool was_there = state.oracle.contributed(header.rank, header.lane, header.seq);
  const switching::Drop drop =
      state.machine.receive(switching::Port(packet.rank.value), Packet{packet.bytes, {}});
  if (drop == switching::Drop::none && header.kind == wire::Kind::contribution && !was_there) {
    state.oracle.switch_takes(header.rank, header.lane, header.seq);
  }
  const bool of_an_epoch =
      drop == switching::Drop::wrong_epoch || drop == switching::Drop::unknown_session;
  if (drop != switching::Drop::none && drop != switching::Drop::stale_seq &&
      !(of_an_epoch && world_.epochs) && !(drop == switching::Drop::mismatch && world_.mismatch)) {
    state.oracle.complain(std::string("the switch refuses what a rank sent: ") +
                          switching::to_string(drop) + ": " + wire::to_string(header));
  }
  poll_switch(state);
  if (state.crashed && !state.placed) return;
  if (state.machine.slots_in_use() != state.oracle.open_slots(1)) {
    state.oracle.complain("I5: " + std::to_string(state.machine.slots_in_use()) +
                          " slots are in use, and " + std::to_string(state.oracle.open_slots(1)) +
                          " should be");
  }
}

void Model::poll_agent(State& state, Rank rank) {
  agent::Agent& agent = state.agents[rank.value];
  agent::Transmit out;
  while (agent.poll_transmit(state.clocks[rank.value], out)) {
    std::vector<std::byte> packet = joined(out.header, out.payload, out.padding);
    forget_time(packet);
    state.oracle.rank_sends(rank, header_of(packet), std::span(packet).subspan(wire::header_bytes));
    send(state, true, rank, packet);
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

void Model::poll_switch(State& state) {
  switching::Transmit out;
  while (state.machine.poll_transmit(out)) {
    const std::vector<std::byte> packet = joined(out.header, out.payload);
    const wire::Header header = header_of(packet);
    if (header.kind == wire::Kind::no_session) continue;  // only informs (P16)
    for (const switching::Port port : out.ports) {
      const Rank to(static_cast<std::uint16_t>(port.value));
      state.oracle.switch_sends(to, header, std::span(packet).subspan(wire::header_bytes));
      send(state, false, to, packet);
    }
  }
  switching::Event event;
  while (state.machine.poll_event(event)) {
    if (const auto* bad = std::get_if<switching::ViolationEvent>(&event)) {
      state.oracle.complain("P6: rank " + std::to_string(bad->rank.value) +
                            " is said to break its window at seq " +
                            std::to_string(bad->seq.value));
    }
  }
}

void Model::send(State& state, bool up, Rank rank, std::vector<std::byte> bytes) {
  const std::uint32_t packet = number_of(up, rank, std::move(bytes));
  fresh_.push_back(packet);
  if (state.sent.has(packet)) return;
  state.sent.insert(packet);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    state.sums[i] += packets_[packet].fingerprints[i];
  }
}

std::uint32_t Model::number_of(bool up, Rank rank, std::vector<std::byte> bytes) {
  std::vector<std::byte> key = bytes;
  key.push_back(static_cast<std::byte>(2 * rank.value + up));
  const auto [found, is_new] =
      numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(packets_.size()));
  if (!is_new) return found->second;
  PacketKind packet{up, rank, std::move(bytes), {}};
  for (const auto& names : names_) packet.fingerprints.push_back(packet_fingerprint(packet, names));
  packets_.push_back(std::move(packet));
  return found->second;
}

/// What the packet says; its payload follows from that, or the oracle has complained.
std::uint64_t Model::packet_fingerprint(const PacketKind& packet,
                                        std::span<const std::uint16_t> names) const {
  const wire::Header header = header_of(packet.bytes);
  const std::span<const std::byte> payload = std::span(packet.bytes).subspan(wire::header_bytes);
  bool sums = false;
  if (const auto place = script_->place(packet.rank, header.lane, header.seq)) {
    sums = script_->calls(packet.rank)[place->op]->plan.combine == nir::Combine::reduce;
  }
  Fingerprint walk(names);
  walk.number(packet.up | std::uint64_t{header.epoch.value} << 1);
  walk.rank(packet.rank);
  walk.number(static_cast<std::uint64_t>(header.kind) | std::uint64_t{header.flags} << 8 |
              std::uint64_t{header.seq.value} << 32);
  walk.number(header.descriptor.value);
  walk.number(header.chunk | std::uint64_t{header.offset} << 32);
  wire::Want want;
  wire::Mismatch told;
  if (header.kind == wire::Kind::want && wire::parse(payload, want)) {
    sums ? walk.number(want.ranks) : walk.ranks(want.ranks);
  } else if (header.kind == wire::Kind::mismatch && wire::parse(payload, told)) {
    walk.rank(told.first);
    walk.rank(told.second);
  } else if (header.kind == wire::Kind::result && !sums) {
    walk.rank(header.rank);
  }
  return walk.value();
}

std::uint64_t Model::fingerprint(const State& state) const {
  std::uint64_t least = ~std::uint64_t{0};
  for (std::size_t i = 0; i < names_.size(); ++i) {
    Fingerprint walk(names_[i]);
    for (std::uint16_t name = 0; name < world_.ranks; ++name) {
      const Rank rank = walk.called(name);
      state.agents[rank.value].fingerprint(state.clocks[rank.value], walk);
    }
    state.machine.fingerprint(walk);
    walk.number(state.sums[i]);
    least = std::min(least, walk.value());
  }
  return least;
}

Model::End Model::ends(State state, Sent so_far) {
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
  switch (action.kind) {
    case Action::Kind::packet:
      break;
    case Action::Kind::timeout:
      return "timer of " + rank + " runs out";
    case Action::Kind::crash:
      return "the switch loses all that it has";
    case Action::Kind::fence:
      return rank + " is fenced";
    case Action::Kind::place:
      return "the switch begins the second epoch";
    case Action::Kind::begin:
      return rank + " begins the second epoch";
  }
  const PacketKind& packet = packets_[action.which];
  return std::string(packet.up ? "switch gets from rank " : "rank ") +
         std::to_string(packet.rank.value) + (packet.up ? " " : " gets ") +
         wire::to_string(header_of(packet.bytes));
}

}  // namespace cais::sim
