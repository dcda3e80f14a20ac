#include "sim/world.hpp"

#include <algorithm>

#include "base/fingerprint.hpp"
#include "sim/world_detail.hpp"
#include "wire/digest.hpp"

namespace cais::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t pool_buffers = 128;
constexpr std::uint64_t trouble_ms_max = 300;  // how long a link or a process is in trouble
/// I7: how long a group may stand still once the faults are over: twice the longest timer.
constexpr Duration stall_max = std::chrono::milliseconds(1000);
/// Slots times ranks above which only some of the packets are checked by comparing all of it.
constexpr std::size_t compared_always = 256;

/// A rank has a link to its switch in each plane, a switch one to its parent, both two ways.
std::size_t links_of(const Scenario& scenario) {
  const std::size_t nodes =
      (scenario.switches + 1) * Tree::nodes_of(scenario.levels, scenario.leaves);
  return 2 * (scenario.sessions * ranks_max * switches_max + nodes);
}

}  // namespace

World::World(const Scenario& scenario, Trace trace)
    : scenario_(scenario),
      trace_(std::move(trace)),
      sample_(numbers(scenario.seed, Purpose::sample)),
      network_(scenario, links_of(scenario)),
      safe_until_(Instant() + milliseconds(scenario.safety_ms)),
      ranks_(scenario.sessions * ranks_max),
      nodes_per_plane_(Tree::nodes_of(scenario.levels, scenario.leaves)),
      groups_(scenario.sessions),
      groups_left_(scenario.sessions * scenario.lives),
      control_(numbers(scenario.seed, Purpose::control)),
      impostor_(numbers(scenario.seed, Purpose::impostor)) {
  const std::size_t payload = scenario.payload * (scenario.levels > 1 ? 2 : 1);
  // P18: the last one is the one that a rank has in its process; no session begins there.
  const std::size_t planes = scenario.switches + scenario_.fallback;
  for (std::size_t i = 0; i < planes * nodes_per_plane_; ++i) {
    switches_.push_back(std::make_unique<SwitchProcess>(
        i / nodes_per_plane_, i % nodes_per_plane_, numbers(scenario.seed, Purpose::machine, i),
        pool_buffers, payload + wire::header_bytes));
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i].rng = numbers(scenario.seed, Purpose::rank, i);
  }
  if (scenario_.controlled != 0) take_over();
  for (std::uint64_t session = 0; session < scenario.sessions; ++session) open(session, 0);
  plan_faults();
  timeline_.at(safe_until_, [this] { heal(); });
  report_.runs = 1;
}

World::~World() = default;

void World::open(std::uint64_t session, std::uint64_t life) {
  if (groups_[session]) past_.push_back(std::move(groups_[session]));
  groups_[session] = std::make_unique<Group>(scenario_, session, life);
  Group& group = *groups_[session];
  group.progress_at = timeline_.now();
  tell("session ", group.id().value, " opens for ", group.config.ranks, " ranks, epoch ",
       group.config.epoch.value);
  const std::vector<control::TreeNumber> homes = homes_of(group);
  for (std::uint16_t r = 0; r < group.config.ranks; ++r) {
    RankProcess& node = ranks_[session * ranks_max + r];
    node.agent = std::make_unique<agent::Agent>(group.agent_config(Rank(r)));
    node.group = &group;
    node.rank = Rank(r);
    node.inbox.clear();
    node.member = control::RankMember(group.config.epoch);
    node.servers = homes;
  }
  bool all_up = true;
  for (std::size_t i = 0; i < switches_.size(); ++i) {
    const SwitchProcess& at = *switches_[i];
    const std::uint64_t lanes = lanes_at(at.plane, homes);
    if (lanes == 0 || !group.tree->uses(at.node)) continue;
    if (!at.crashed && !at.cut_off && at.known_life == at.life) {
      group.services[i] = {group.config.epoch, lanes};
      open_at(i, group, group.config.epoch);
      switches_[i]->member.open(group.id(), group.config.epoch);
    } else {
      all_up = false;
    }
  }
  if (scenario_.controlled != 0) put_under_control(group, all_up);
  for (std::uint16_t r = 0; r < group.config.ranks; ++r) call(ranks_[session * ranks_max + r]);
  if (group.config.ranks == 1) report_.reach(Probe::one_rank);
}

/// The last rank leaves a moment after the last op.
void World::close_when_over(Group& group) {
  if (group.closing || !is_over(group)) return;
  group.closing = true;
  timeline_.after(microseconds(group.rng.below(5'000)), [this, &group] { close(group); });
}

void World::close(Group& group) {
  if (group.closed) return;
  if (scenario_.controlled != 0) {
    if (!stewards_.empty()) stewards_.back().machine.close(timeline_.now(), group.id());
    return steer();
  }
  for (std::size_t i = 0; i < switches_.size(); ++i) {
    drain(i);
    switches_[i]->machine.close(group.id());
    switches_[i]->member.close(group.id());
  }
  check_closed(group);
}

/// P20, I6.
void World::check_closed(Group& group) {
  for (const auto& each : switches_) {
    if (each->member.find(group.id()) == nullptr) continue;
    if (!each->cut_off) fail("P20: a switch has a session that is closed");
    // One that is cut off keeps it until it meets its controller again.
    each->forsaken.insert(group.id());
  }
  group.closed = true;
  group.closing = true;
  for (std::size_t i = 0; i < switches_.size(); ++i) check_slots(i);
  const std::uint64_t session = group.id().value - 1;
  for (std::uint16_t r = 0; r < group.config.ranks; ++r) {
    ranks_[session * ranks_max + r].agent.reset();
    for (std::uint64_t op = 0; op < group.oracle->done(Rank(r)); ++op) {
      if (group.script->calls(Rank(r))[op]->right(r)) continue;
      fail("I6: the output of op " + std::to_string(op) + " at rank " + std::to_string(r) +
           " was changed after it was done");
    }
  }
  tell("session ", group.id().value, " is closed");
  --groups_left_;
  if (group.life + 1 >= scenario_.lives) return;
  timeline_.after(microseconds(group.rng.below(2'000)),
                  [this, session, life = group.life + 1] { open(session, life); });
}

void World::plan_faults() {
  if (scenario_.safety_ms == 0) return;
  const auto plan = [&](std::uint64_t times, Fault fault, const auto& strike) {
    Rng rng = numbers(scenario_.seed, Purpose::fault, static_cast<std::uint64_t>(fault));
    for (std::uint64_t i = 0; i < times; ++i) {
      const Instant when = Instant() + microseconds(rng.below(1000 * scenario_.safety_ms));
      const Duration length = microseconds(rng.below(1000 * trouble_ms_max));
      const std::uint64_t session = rng.below(scenario_.sessions);
      const std::size_t rank = session * ranks_max + rng.below(scenario_.ranks);
      const std::size_t plane = rng.below(scenario_.switches);
      const bool up = rng.chance(0.5);
      const std::size_t machine =
          at_node(plane, nodes_per_plane_ > 1 ? rng.below(nodes_per_plane_) : 0);
      const bool between_switches = nodes_per_plane_ > 1 && rng.chance(0.5);
      const std::size_t way = between_switches ? link_above(machine, up)
                                               : link(static_cast<std::uint32_t>(rank), plane, up);
      timeline_.at(when, [=, this] {
        const Instant until = std::min(timeline_.now() + length, safe_until_);
        tell(to_string(fault), ": rank ", rank % ranks_max, " of session ", 1 + session,
             ", switch ", machine, between_switches ? ", between switches, " : ", ",
             up ? "up" : "down");
        strike(rank, machine, way, until);
      });
    }
  };
  plan(scenario_.clogs, Fault::clog,
       [this](std::size_t, std::size_t, std::size_t way, Instant until) {
         network_.clog(way, until);
       });
  plan(scenario_.partitions, Fault::partition,
       [this](std::size_t, std::size_t, std::size_t way, Instant until) {
         network_.cut(way, until);
       });
  plan(scenario_.rank_pauses, Fault::rank_pause,
       [this](std::size_t rank, std::size_t, std::size_t, Instant until) {
         pause(ranks_[rank], Fault::rank_pause, until);
       });
  plan(scenario_.switch_crashes, Fault::switch_crash,
       [this](std::size_t, std::size_t machine, std::size_t, Instant until) {
         crash_switch(machine, until);
       });
  plan(scenario_.switch_cut_offs, Fault::switch_cut_off,
       [this](std::size_t, std::size_t machine, std::size_t, Instant until) {
         cut_off_switch(machine, until);
       });
  plan(scenario_.rank_crashes, Fault::rank_crash,
       [this](std::size_t rank, std::size_t, std::size_t, Instant) { crash_rank(ranks_[rank]); });
  plan(scenario_.controller_crashes, Fault::controller_crash,
       [this](std::size_t, std::size_t, std::size_t, Instant) { crash_controller(); });
  plan(scenario_.switch_pauses, Fault::switch_pause,
       [this](std::size_t, std::size_t machine, std::size_t, Instant until) {
         pause(*switches_[machine], Fault::switch_pause, until);
       });
}

void World::pause(Process& process, Fault fault, Instant until) {
  ++network_.faults()[static_cast<std::size_t>(fault)];
  process.paused_until = std::max(process.paused_until, until);
  timeline_.at(process.paused_until, [this, &process] {
    if (process.paused(timeline_.now())) return;
    std::deque<Delivery> waiting;
    waiting.swap(process.inbox);
    for (const Delivery& packet : waiting) {
      for (std::size_t i = 0; i < switches_.size(); ++i) {
        if (switches_[i].get() == &process) switch_receives(i, packet);
      }
      for (RankProcess& node : ranks_) {
        if (&node == &process) rank_receives(node, packet);
      }
    }
    for (RankProcess& node : ranks_) {
      if (&node == &process && node.agent) submit_described(node);
    }
  });
}

void World::heal() {
  tell("the faults are over");
  network_.heal();
}

void World::run() {
  while (failure_.empty() && groups_left_ > 0 && step()) {
  }
  report_.simulated = timeline_.now() - Instant();
  report_.faults = network_.faults();
  if (!failure_.empty()) return;
  for (const auto& each : switches_) {
    if (each->cut_off) continue;
    if (each->machine.slots_in_use() != 0) fail("I5: slots are owned after the last session");
    if (each->pool.free_count() != each->pool.capacity()) {
      fail("I5: receive buffers are kept after the last session");
    }
  }
}

bool World::step() {
  const Instant timer = next_timer();
  if (timer == never && timeline_.next() == never) {
    fail("I7: nothing will ever happen any more, and not all is done");
    return false;
  }
  if (timer <= timeline_.next()) {
    timeline_.advance(timer);
    run_timers();
  } else {
    timeline_.step();
  }
  check_stalls();
  return true;
}

Instant World::next_timer() const {
  Instant first = never;
  for (const RankProcess& node : ranks_) {
    if (!node.agent || node.agent->deadline() == never) continue;
    first = std::min(first, std::max(node.agent->deadline(), node.paused_until));
  }
  for (const Steward& steward : stewards_) {
    if (steward.alive) first = std::min(first, steward.machine.deadline());
  }
  return first;
}

void World::run_timers() {
  for (RankProcess& node : ranks_) {
    if (!node.agent || node.paused(timeline_.now()) || node.agent->deadline() > timeline_.now()) {
      continue;
    }
    report_.reach(Probe::timed_out);
    tell("timer of rank ", node.rank.value, " of session ", node.group->id().value);
    node.agent->timeout(timeline_.now());
    drain(node);
  }
  for (Steward& steward : stewards_) {
    if (steward.alive && steward.machine.deadline() <= timeline_.now()) {
      steward.machine.timeout(timeline_.now());
    }
  }
  steer();
}

/// I7.
void World::check_stalls() {
  for (const auto& group : groups_) {
    if (!group || group->closing) continue;
    // A rank that has nothing under way, and more to call, holds the others up by itself.
    if (group->someone_thinks()) group->progress_at = timeline_.now();
    const Duration stall = timeline_.now() - std::max(group->progress_at, safe_until_);
    if (stall > report_.longest_stall) {
      report_.longest_stall = stall;
      report_.stall_seed = scenario_.seed;
    }
    if (stall > stall_max) {
      fail("I7: session " + std::to_string(group->id().value) +
           " stands still, although the faults are over");
    }
  }
}

/// I5.
void World::check_slots(std::size_t which) {
  if (!switches_[which]->forsaken.empty()) return;
  std::size_t open = 0;
  for (const auto& group : groups_) {
    if (!group || group->closed) continue;
    const std::uint64_t lanes = group->lanes_served(which);
    if (lanes != 0) open += group->oracle->open_slots(switches_[which]->node, lanes);
  }
  const std::size_t in_use = switches_[which]->machine.slots_in_use();
  if (in_use == open) return;
  fail("I5: a switch has " + std::to_string(in_use) + " slots in use, and should have " +
       std::to_string(open));
}

bool World::is_current(const Group& group) const {
  return groups_[group.id().value - 1].get() == &group && !group.closed;
}

void World::fail(const std::string& what) {
  if (!failure_.empty()) return;
  failure_ = what;
  tell("FAILED ", what);
}

void World::take_complaint(const Group& group) {
  if (!group.oracle->complaint().empty()) {
    fail("session " + std::to_string(group.id().value) + ": " + group.oracle->complaint());
  }
}

bool World::compares(std::size_t state_size) {
  const bool yes = state_size <= compared_always || sample_.below(state_size) < compared_always;
  report_.checked += yes;
  return yes;
}

std::size_t World::link(std::uint32_t endpoint, std::size_t plane, bool up) const {
  return (std::size_t{endpoint} * switches_max + plane) * 2 + up;
}

std::size_t World::link_above(std::size_t which_switch, bool up) const {
  return (ranks_.size() * switches_max + which_switch) * 2 + up;
}

std::uint32_t World::endpoint_of(std::size_t which_switch) const {
  return static_cast<std::uint32_t>(2 * ranks_.size() + which_switch);
}

bool World::impostor_strikes() {
  const bool strikes =
      impostor_.below(1'000'000) < scenario_.impostor && timeline_.now() < safe_until_;
  if (strikes) ++network_.faults()[static_cast<std::size_t>(Fault::impostor)];
  return strikes;
}

bool World::is_impostor(std::uint32_t endpoint) const {
  if (endpoint < endpoint_of(0)) return endpoint >= ranks_.size();
  return endpoint >= endpoint_of(switches_.size());
}

std::size_t World::at_node(std::size_t plane, std::size_t node) const {
  return plane * nodes_per_plane_ + node;
}

void World::carry(std::size_t which, std::vector<std::byte> packet,
                  const std::function<void(const Delivery&)>& arrive, std::uint32_t from) {
  ++report_.packets;
  for (const Copy& copy : network_.carry(timeline_.now(), which, std::move(packet))) {
    timeline_.at(copy.arrives, [arrive, delivery = Delivery{copy.bytes, from, copy.damaged}] {
      arrive(delivery);
    });
  }
}

void World::record(const Delivery& packet, std::uint32_t to) {
  const std::uint64_t stamp[] = {
      static_cast<std::uint64_t>(timeline_.now().time_since_epoch().count()), to,
      wire::digest(*packet.bytes), digest_};
  digest_ = wire::digest(std::as_bytes(std::span(stamp)));
}

}  // namespace cais::sim
