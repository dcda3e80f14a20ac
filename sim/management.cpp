// The management of the simulated world: controllers and their orders, what ranks and switches do
// with these, and the crashes that they answer to. Orders and answers are lost, doubled and late
// like packets.
#include <algorithm>

#include "sim/world.hpp"
#include "sim/world_detail.hpp"

namespace cais::sim {
namespace {

using control::Answer;
using control::Order;
using control::Response;
using std::chrono::microseconds;
using Deed = Response::Deed;

constexpr std::uint64_t million = 1'000'000;
constexpr std::uint64_t detection_us_max = 50'000;   // until the management knows of a crash
constexpr std::uint64_t succession_us_max = 50'000;  // until another controller is in charge
constexpr std::uint64_t lingering_us_max = 200'000;  // of one that is taken for dead
constexpr std::uint64_t much_later_us_max = 100'000;

control::SwitchNumber number_of(std::size_t which) {
  return control::SwitchNumber(static_cast<std::uint32_t>(which));
}

}  // namespace

/// Lanes are dealt out to the planes, which are the trees of all sessions.
std::vector<control::TreeNumber> World::homes_of(const Group& group) const {
  std::vector<control::TreeNumber> homes;
  for (std::size_t lane = 0; lane < group.config.lanes; ++lane) {
    homes.emplace_back(static_cast<std::uint32_t>(lane % scenario_.switches));
  }
  return homes;
}

control::SessionSpec World::spec_of(const Group& group) const {
  control::SessionSpec spec{
      group.id(), group.config.epoch, group.config.ranks, {}, homes_of(group)};
  spec.trees.resize(scenario_.switches + scenario_.fallback);
  for (std::size_t i = 0; i < switches_.size(); ++i) {
    const SwitchProcess& at = *switches_[i];
    if (group.tree->uses(at.node)) spec.trees[at.plane].push_back(number_of(i));
  }
  if (scenario_.fallback != 0) {
    spec.fallback = control::TreeNumber(static_cast<std::uint32_t>(scenario_.switches));
  }
  return spec;
}

/// When a switch is down, the first thing that the session needs is another epoch.
void World::put_under_control(Group& group, bool all_up) {
  if (stewards_.empty()) return;  // whoever takes over will find it
  control::Controller& controller = stewards_.back().machine;
  const control::SessionSpec spec = spec_of(group);
  const auto known = all_up ? controller.open(spec) : controller.adopt(timeline_.now(), spec);
  if (!known) fail(known.error().message);
  steer();
}

bool World::is_over(const Group& group) const {
  for (std::uint16_t r = 0; r < group.config.ranks; ++r) {
    const bool through = group.oracle->done(Rank(r)) == group.script->calls(Rank(r)).size();
    if (!through && !group.members[r].ended) return false;
  }
  return true;
}

/// All that it knew is gone.
void World::start_anew(std::size_t which) {
  SwitchProcess& node = *switches_[which];
  ++node.life;
  node.machine = switching::Switch();
  node.member = control::SwitchMember();
  node.forsaken.clear();
  node.inbox.clear();
  for (const auto& group : groups_) {
    if (group) group->withdraw(which);
  }
}

/// It comes back at `until`; the management hears of both a while later.
void World::crash_switch(std::size_t which, Instant until) {
  SwitchProcess& node = *switches_[which];
  if (node.crashed || node.cut_off || scenario_.controlled == 0) return;
  ++network_.faults()[static_cast<std::size_t>(Fault::switch_crash)];
  node.crashed = true;
  const std::uint64_t life = node.life;
  start_anew(which);
  const Instant known = expect_loss(which, life);
  timeline_.at(until, [this, which] {
    tell("switch ", which, " is back");
    switches_[which]->crashed = false;
  });
  expect_return(which, std::max(known, until));
}

/// The management cannot reach it, and takes it for lost, while ranks still can. When they meet
/// again it drops all that it has.
void World::cut_off_switch(std::size_t which, Instant until) {
  SwitchProcess& node = *switches_[which];
  if (node.crashed || node.cut_off || scenario_.controlled == 0) return;
  ++network_.faults()[static_cast<std::size_t>(Fault::switch_cut_off)];
  node.cut_off = true;
  const Instant known = expect_loss(which, node.life);
  timeline_.at(std::max(known, until), [this, which] {
    switches_[which]->cut_off = false;
    start_anew(which);
  });
  expect_return(which, std::max(known, until));
}

Instant World::expect_loss(std::size_t which, std::uint64_t life) {
  const Instant known = timeline_.now() + microseconds(control_.below(detection_us_max));
  timeline_.at(known, [this, which, life] {
    if (!stewards_.empty()) {
      stewards_.back().machine.switch_lost(timeline_.now(), number_of(which), life);
    }
    steer();
  });
  return known;
}

void World::expect_return(std::size_t which, Instant earliest) {
  timeline_.at(earliest + microseconds(control_.below(detection_us_max)), [this, which] {
    const SwitchProcess& node = *switches_[which];
    if (!node.crashed && !node.cut_off) hear_of_switch(which);  // else it is heard of later
    steer();
  });
}

/// It registers with the controller that is in charge, and learns its lease: a deposed one cannot
/// open sessions there.
void World::hear_of_switch(std::size_t which) {
  SwitchProcess& node = *switches_[which];
  node.known_life = node.life;
  if (stewards_.empty()) return;
  control::Controller& controller = stewards_.back().machine;
  node.member.know(controller.lease());
  controller.switch_found(timeline_.now(), number_of(which), node.life);
}

void World::crash_rank(RankProcess& node) {
  if (!node.agent || scenario_.controlled == 0) return;
  Group& group = *node.group;
  if (group.closing) return;
  ++network_.faults()[static_cast<std::size_t>(Fault::rank_crash)];
  node.agent.reset();
  node.inbox.clear();
  group.members[node.rank.value].ended = true;
  group.members[node.rank.value].crashed = true;
  timeline_.after(microseconds(control_.below(detection_us_max)), [this, &node, &group] {
    if (node.group == &group && is_current(group)) report_rank(node);
  });
  close_when_over(group);
}

void World::report_rank(const RankProcess& node) {
  if (stewards_.empty()) return;
  stewards_.back().machine.rank_lost(timeline_.now(), node.group->id(), node.rank,
                                     "rank " + std::to_string(node.rank.value));
  steer();
}

/// It may only seem dead: for a while it still gives orders.
void World::crash_controller() {
  if (stewards_.empty() || scenario_.controlled == 0) return;
  ++network_.faults()[static_cast<std::size_t>(Fault::controller_crash)];
  Steward& old = stewards_.back();
  timeline_.after(microseconds(control_.below(lingering_us_max)), [&old] { old.alive = false; });
  timeline_.after(microseconds(control_.below(succession_us_max)), [this] { take_over(); });
}

/// Another controller, which knows of machines what anybody can find out, and of sessions that they
/// exist.
void World::take_over() {
  stewards_.push_back({control::Controller(control::Lease(stewards_.size() + 1))});
  control::Controller& controller = stewards_.back().machine;
  tell("controller ", controller.lease().value, " is in charge");
  for (std::size_t i = 0; i < switches_.size(); ++i) {
    const SwitchProcess& at = *switches_[i];
    if (at.plane < scenario_.switches && !at.crashed && !at.cut_off) hear_of_switch(i);
  }
  for (const auto& group : groups_) {
    if (!group || group->closed) continue;
    if (auto known = controller.adopt(timeline_.now(), spec_of(*group)); !known)
      fail(known.error().message);
    for (std::uint16_t r = 0; r < group->config.ranks; ++r) {
      const RankProcess& node = ranks_[(group->id().value - 1) * ranks_max + r];
      if (group->members[r].crashed) report_rank(node);
    }
    if (group->closing) controller.close(timeline_.now(), group->id());
  }
  steer();
}

/// What the controllers have to say.
void World::steer() {
  for (std::size_t i = 0; i < stewards_.size(); ++i) {
    Steward& steward = stewards_[i];
    Order order;
    while (steward.machine.poll(order)) {
      if (steward.alive) carry_order(order);
    }
    control::Event event;
    while (steward.machine.poll_event(event)) take_event(steward, event);
  }
}

void World::take_event(Steward& steward, const control::Event& event) {
  if (const auto* by = std::get_if<control::Superseded>(&event)) {
    tell("controller ", steward.machine.lease().value, " hears of ", by->by.value);
    return report_.reach(Probe::superseded);
  }
  if (std::holds_alternative<control::Stranded>(event)) return report_.reach(Probe::stranded);
  if (std::holds_alternative<control::FellBack>(event)) return report_.reach(Probe::fell_back);
  if (const auto* resumed = std::get_if<control::Resumed>(&event)) {
    tell("session ", resumed->session.value, " goes on in epoch ", resumed->epoch.value);
    return report_.reach(Probe::resumed);
  }
  if (const auto* failed = std::get_if<control::Failed>(&event)) {
    tell("session ", failed->session.value, " has failed: ", failed->why);
    return report_.reach(Probe::rank_died);
  }
  Group& group = *groups_[std::get<control::Closed>(event).session.value - 1];
  // One that was deposed may be slow: only who is in charge closes for all.
  if (is_current(group) && &steward == &stewards_.back()) check_closed(group);
}

void World::over_the_wire(std::function<void()> arrive) {
  const bool faulty = timeline_.now() < safe_until_;
  const auto way = [&] { return microseconds(control_.below(management_us_max)); };
  const bool lost = control_.below(million) < scenario_.control_loss && faulty;
  const bool doubled = control_.below(million) < scenario_.control_doubled && faulty;
  FaultCounts& faults = network_.faults();
  if (doubled) {
    ++faults[static_cast<std::size_t>(Fault::control_doubled)];
    timeline_.after(way() + microseconds(control_.below(much_later_us_max)), arrive);
  }
  if (lost) {
    ++faults[static_cast<std::size_t>(Fault::control_loss)];
    return;
  }
  timeline_.after(way(), std::move(arrive));
}

void World::carry_order(const Order& order) {
  const bool to_rank = order.to.is(control::Node::Kind::rank);
  const std::string whom = (to_rank ? "rank " : "switch ") + std::to_string(order.to.number);
  tell("controller ", order.lease.value, " orders ", whom, " of session ", order.session.value,
       ": ", control::to_string(order.kind), " epoch ", order.epoch.value);
  // An order goes over a connection, which ends with the life of the switch.
  const std::uint64_t life = to_rank ? 0 : switches_[order.to.number]->known_life;
  over_the_wire([this, order, life] { obey(order, life); });
}

void World::obey(const Order& order, std::uint64_t life) {
  const bool to_rank = order.to.is(control::Node::Kind::rank);
  Process* process = switches_[to_rank ? 0 : order.to.number].get();
  if (to_rank) process = &ranks_[(order.session.value - 1) * ranks_max + order.to.number];
  if (process->paused(timeline_.now())) {
    timeline_.at(process->paused_until, [this, order, life] { obey(order, life); });
  } else if (to_rank) {
    obey(static_cast<RankProcess&>(*process), order);
  } else if (const SwitchProcess& to = *switches_[order.to.number];
             !to.crashed && !to.cut_off && to.life == life) {
    obey(order.to.number, order);
  }
}

void World::obey(RankProcess& node, const Order& order) {
  // A process that has ended says nothing; one of another life is another process.
  if (node.group == nullptr || !node.group->lives_in(order.epoch)) return;
  Group& group = *node.group;
  if (!node.agent && !node.member.over()) return;
  Response response = node.member.take(order);
  switch (response.deed) {
    case Deed::fail:
      if (!group.failure.empty() && group.failure != order.why) {
        fail("P19: ranks of one session fail for different reasons");
      }
      group.failure = order.why;
      tell("rank ", node.rank.value, " of session ", group.id().value, " fails: ", order.why);
      node.agent.reset();
      group.members[node.rank.value].ended = true;
      group.progress_at = timeline_.now();
      break;
    case Deed::fence:
      node.agent->fence();
      break;
    case Deed::begin:
      if (auto resumed = node.agent->resume(order.epoch, order.from); !resumed) {
        return fail("P4: rank " + std::to_string(node.rank.value) +
                    " cannot go on: " + resumed.error().message);
      }
      node.servers = order.servers;
      group.progress_at = timeline_.now();
      break;
    case Deed::nothing:
    case Deed::close:
      break;
  }
  if (response.answer && response.answer->kind == Answer::Kind::fenced) {
    for (std::uint8_t lane = 0; lane < group.config.lanes; ++lane) {
      response.answer->unsettled.push_back(node.agent->first_unsettled(Lane(lane)));
    }
  }
  answer(order, response);
  if (node.agent) return drain(node);
  close_when_over(group);
}

void World::obey(std::size_t which, const Order& order) {
  SwitchProcess& node = *switches_[which];
  Group& group = *groups_[order.session.value - 1];
  const bool has = node.member.find(order.session) != nullptr;
  // Of an earlier life: where lives begin with an order, too, that has overtaken it.
  if (has && !group.lives_in(order.epoch)) return;
  drain(which);
  const Response response = node.member.take(order);
  if (response.deed != Deed::nothing && response.deed != Deed::close &&
      (!is_current(group) || !group.lives_in(order.epoch))) {
    return fail("P20: switch " + std::to_string(which) + " takes up a session that is closed");
  }
  switch (response.deed) {
    case Deed::close:
      node.machine.close(order.session);
      group.withdraw(which);
      break;
    case Deed::fence:
      if (auto fenced = node.machine.fence(order.session, order.epoch); !fenced) {
        fail("P15: " + fenced.error().message);
      }
      group.withdraw(which);
      break;
    case Deed::begin:
      begin(which, group, order, !has);
      break;
    case Deed::nothing:
    case Deed::fail:
      break;
  }
  if (!response.answer) report_.reach(Probe::order_overtaken);
  answer(order, response);
}

/// A switch that has nothing of the session opens it; one that has an older epoch fences that
/// first.
void World::begin(std::size_t which, Group& group, const Order& order, bool anew) {
  SwitchProcess& node = *switches_[which];
  if (anew) open_at(which, group, Epoch(static_cast<std::uint16_t>(order.epoch.value - 1)));
  const std::uint64_t served = lanes_at(node.plane, order.servers);
  auto begun = node.machine.fence(order.session, order.epoch);
  if (begun) begun = node.machine.resume(order.session, order.epoch, served, order.from);
  if (!begun) return fail("P15: " + begun.error().message);
  group.withdraw(which);
  forsake_older(group, order.epoch);
  group.services[which] = {order.epoch, served};
  group.from[order.epoch] = order.from;
  const std::vector<control::TreeNumber> homes = homes_of(group);
  for (std::size_t lane = 0; lane < order.servers.size(); ++lane) {
    if ((served >> lane & 1) == 0) continue;
    if (order.servers[lane] != homes[lane]) report_.reach(Probe::moved);
    if (group.oracle->begins(node.node, Lane(static_cast<std::uint8_t>(lane)), order.from[lane])) {
      report_.reach(Probe::resumed_again);
    }
  }
  if (group.tree->node(node.node).level > 1) report_.reach(Probe::tree_resumed);
  group.progress_at = timeline_.now();
  take_complaint(group);
  check_slots(which);
}

/// What is still in service in an epoch before that one was out of reach when it was fenced: all
/// others have left it behind.
void World::forsake_older(Group& group, Epoch epoch) {
  std::erase_if(group.services, [&](const auto& each) {
    if (each.second.epoch >= epoch) return false;
    tell("switch ", each.first, " is left behind in epoch ", each.second.epoch.value);
    switches_[each.first]->forsaken.insert(group.id());
    return true;
  });
}

void World::answer(const Order& order, const Response& response) {
  if (!response.answer) return;
  if (response.answer->kind == Answer::Kind::stale) report_.reach(Probe::order_refused);
  if (response.answer->kind == Answer::Kind::ahead) report_.reach(Probe::epoch_overtaken);
  over_the_wire([this, reply = *response.answer, to = order.lease] {
    for (Steward& steward : stewards_) {
      if (steward.alive && steward.machine.lease() == to) {
        steward.machine.receive(timeline_.now(), reply);
      }
    }
    steer();
  });
}

}  // namespace cais::sim
