#include "sim/check/control_model.hpp"

#include <algorithm>
#include <deque>

#include "base/check.hpp"
#include "base/fingerprint.hpp"

namespace cais::sim {
namespace {

using control::Answer;
using control::Node;
using control::Order;
using control::SwitchNumber;
using control::TreeNumber;
using Deed = control::Response::Deed;

constexpr SessionId session{1};
constexpr std::uint16_t ranks = 2;
constexpr std::uint32_t positions = 2;  // that a rank can come to
constexpr int repeats_in_walk = 1;      // of one controller
constexpr int repeats_max = 8;  // of one controller, after which a run without faults is over

std::string name_of(const Node& node) {
  return (node.is(Node::Kind::rank) ? "rank " : "switch ") + std::to_string(node.number);
}

std::string in_words(const Order& order) {
  std::string words = "order " + std::to_string(order.number) + " of controller " +
                      std::to_string(order.lease.value) + " to " + name_of(order.to) + ": " +
                      control::to_string(order.kind) + " epoch " +
                      std::to_string(order.epoch.value);
  for (const Seq seq : order.from) words += ", from " + std::to_string(seq.value);
  for (const TreeNumber tree : order.servers) words += ", tree " + std::to_string(tree.value);
  return words + (order.why.empty() ? "" : ", because " + order.why);
}

std::string in_words(const Answer& answer, std::size_t to) {
  std::string words = "answer of " + name_of(answer.from) + " to controller " +
                      std::to_string(to + 1) + ": " + control::to_string(answer.kind) + " epoch " +
                      std::to_string(answer.epoch.value);
  for (const Seq seq : answer.unsettled) words += ", unsettled " + std::to_string(seq.value);
  if (answer.kind == Answer::Kind::stale) words += ", lease " + std::to_string(answer.lease.value);
  return words;
}

std::vector<ControlWorld> make_worlds() {
  const SwitchNumber s0{0};
  const SwitchNumber s1{1};
  const SwitchNumber s2{2};
  std::vector<ControlWorld> worlds;
  worlds.push_back({"control-two-switches", "a switch is lost, another is there", 2, {{s0}, {s1}}});
  worlds.push_back(
      {"control-stale", "the same, and another controller takes over", 2, {{s0}, {s1}}});
  worlds.back().successions = 1;
  worlds.push_back({"control-tree",
                    "a switch of a tree is lost, or two; another tree is there",
                    3,
                    {{s0, s1}, {s2}}});
  worlds.back().losses = 2;
  worlds.push_back(
      {"control-fallback", "a switch is lost; a rank embeds the only other one", 1, {{s0}, {s1}}});
  worlds.back().fallback = TreeNumber(1);
  worlds.back().losses = 2;
  worlds.push_back(
      {"control-fallback-stale", "the same, and another controller takes over", 1, {{s0}, {s1}}});
  worlds.back().fallback = TreeNumber(1);
  worlds.back().successions = 1;
  worlds.push_back(
      {"control-close", "a switch is lost, and the session is closed", 2, {{s0}, {s1}}});
  worlds.back().closes = true;
  worlds.push_back(
      {"control-close-stale", "the same, and another controller takes over", 2, {{s0}, {s1}}});
  worlds.back().closes = true;
  worlds.back().successions = 1;
  worlds.push_back({"control-death", "a switch is lost, and a rank dies", 2, {{s0}, {s1}}});
  worlds.back().deaths = 1;
  worlds.push_back({"control-death-stale",
                    "the same with one switch, and another controller takes over",
                    1,
                    {{s0}}});
  worlds.back().deaths = 1;
  worlds.back().successions = 1;
  return worlds;
}

}  // namespace

const std::vector<ControlWorld>& control_worlds() {
  static const std::vector<ControlWorld> worlds = make_worlds();
  return worlds;
}

control::SessionSpec ControlModel::spec() const {
  return {session, Epoch(1), ranks, world_.trees, {TreeNumber(0)}, world_.fallback};
}

ControlModel::State ControlModel::first() {
  State state;
  const std::size_t embedded = world_.fallback ? world_.trees[world_.fallback->value].size() : 0;
  state.switches.resize(world_.machines + embedded);
  state.stewards.emplace_back(control::Controller(control::Lease(1)));
  for (std::uint32_t m = 0; m < world_.machines; ++m) find(state, m);
  for (const SwitchNumber machine : world_.trees[0]) {
    state.switches[machine.value].member.open(session, Epoch(1));
  }
  for (std::uint16_t r = 0; r < ranks; ++r) {
    state.ranks.push_back({control::RankMember(Epoch(1))});
  }
  CAIS_CHECK(state.stewards[0].machine.open(spec()).ok());
  return state;
}

void ControlModel::actions(const State& state, std::vector<Action>& out) const {
  using Kind = Action::Kind;
  out.clear();
  const auto add = [&](Kind kind, std::size_t which) {
    const Action action{kind, static_cast<std::uint32_t>(which)};
    if (possible(state, action)) out.push_back(action);
  };
  for (const std::uint32_t mail : state.sent) add(Kind::mail, mail);
  for (std::size_t i = 0; i < state.stewards.size(); ++i) add(Kind::repeat, i);
  for (std::size_t r = 0; r < ranks; ++r) {
    for (const Kind kind : {Kind::advance, Kind::die, Kind::report}) add(kind, r);
  }
  for (std::size_t m = 0; m < world_.machines; ++m) {
    for (const Kind kind : {Kind::crash, Kind::cut, Kind::lose, Kind::find}) add(kind, m);
  }
  add(Kind::succeed, 0);
  add(Kind::close, 0);
}

bool ControlModel::possible(const State& state, const Action& action) const {
  const State::Steward& in_charge = state.stewards.back();
  const auto believed = in_charge.lives.find(action.which);
  const bool lives = believed != in_charge.lives.end();
  switch (action.kind) {
    case Action::Kind::mail:
      return std::find(state.sent.begin(), state.sent.end(), action.which) != state.sent.end();
    case Action::Kind::repeat: {
      if (action.which >= state.stewards.size()) return false;
      const State::Steward& steward = state.stewards[action.which];
      return steward.repeated < repeats_in_walk && steward.machine.deadline() != never;
    }
    case Action::Kind::advance: {
      const State::RankProcess& rank = state.ranks[action.which];
      return rank.alive && !rank.member.over() && !rank.member.fenced() &&
             rank.position + 1 < positions;
    }
    case Action::Kind::crash:
    case Action::Kind::cut:
      return state.losses < world_.losses && !state.switches[action.which].cut;
    case Action::Kind::lose: {
      const State::SwitchProcess& machine = state.switches[action.which];
      return lives && (machine.cut || machine.life != believed->second);
    }
    case Action::Kind::find:
      return !lives || (!state.switches[action.which].cut &&
                        state.switches[action.which].life != believed->second);
    case Action::Kind::succeed:
      return !state.closed && static_cast<int>(state.stewards.size()) <= world_.successions;
    case Action::Kind::die:
      return state.deaths < world_.deaths && state.ranks[action.which].alive;
    case Action::Kind::report:
      return !state.ranks[action.which].alive &&
             std::find(state.dead.begin(), state.dead.end(), action.which) == state.dead.end();
    case Action::Kind::close:
      return world_.closes && !state.closing;
  }
  return false;
}

void ControlModel::apply(State& state, const Action& action) {
  State::Steward& in_charge = state.stewards.back();
  fresh_.clear();
  switch (action.kind) {
    case Action::Kind::mail:
      deliver(state, Mail(mail_[action.which]));
      break;
    case Action::Kind::repeat: {
      State::Steward& steward = state.stewards[action.which];
      steward.now = std::max(steward.now, steward.machine.deadline());
      steward.machine.timeout(steward.now);
      ++steward.repeated;
      break;
    }
    case Action::Kind::advance:
      ++state.ranks[action.which].position;
      break;
    case Action::Kind::crash:
      ++state.losses;
      ++state.switches[action.which].life;
      state.switches[action.which].member = control::SwitchMember();
      break;
    case Action::Kind::cut:
      ++state.losses;
      state.switches[action.which].cut = true;
      break;
    case Action::Kind::lose: {
      const std::uint64_t life = in_charge.lives.at(action.which);
      in_charge.lives.erase(action.which);
      in_charge.machine.switch_lost(in_charge.now, SwitchNumber(action.which), life);
      break;
    }
    case Action::Kind::find:
      find(state, action.which);
      break;
    case Action::Kind::succeed:
      succeed(state);
      break;
    case Action::Kind::die:
      ++state.deaths;
      state.ranks[action.which].alive = false;
      break;
    case Action::Kind::report:
      state.dead.push_back(action.which);
      in_charge.machine.rank_lost(in_charge.now, session,
                                  Rank(static_cast<std::uint16_t>(action.which)),
                                  name_of({Node::Kind::rank, action.which}));
      break;
    case Action::Kind::close:
      state.closing = true;
      in_charge.machine.close(in_charge.now, session);
      break;
  }
  steer(state);
  check(state);
}

/// It registers with the controller in charge. One that was cut off drops all that it has.
void ControlModel::find(State& state, std::uint32_t machine) {
  State::SwitchProcess& process = state.switches[machine];
  State::Steward& in_charge = state.stewards.back();
  if (process.cut) {
    process.cut = false;
    ++process.life;
    process.member = control::SwitchMember();
  }
  process.member.know(in_charge.machine.lease());
  in_charge.lives[machine] = process.life;
  in_charge.machine.switch_found(in_charge.now, SwitchNumber(machine), process.life);
}

/// It finds out which switches and ranks live, and knows that the session exists. The one before it
/// need not have noticed.
void ControlModel::succeed(State& state) {
  const control::Lease lease(state.stewards.size() + 1);
  state.stewards.emplace_back(control::Controller(lease));
  for (std::uint32_t m = 0; m < world_.machines; ++m) {
    if (!state.switches[m].cut) find(state, m);
  }
  State::Steward& in_charge = state.stewards.back();
  CAIS_CHECK(in_charge.machine.adopt(in_charge.now, spec()).ok());
  state.dead.clear();
  if (state.closing) in_charge.machine.close(in_charge.now, session);
}

void ControlModel::steer(State& state) {
  for (std::size_t i = 0; i < state.stewards.size(); ++i) {
    State::Steward& steward = state.stewards[i];
    for (Order order; steward.machine.poll(order);) {
      Mail mail;
      const auto life = steward.lives.find(order.to.number);
      const bool to_rank = order.to.is(Node::Kind::rank);
      if (!to_rank && life != steward.lives.end()) mail.life = life->second;
      mail.words = in_words(order) + (to_rank ? "" : " in life " + std::to_string(mail.life));
      mail.order = std::move(order);
      send(state, std::move(mail));
    }
    for (control::Event event; steward.machine.poll_event(event);) {
      // One that was deposed may be slow: only who is in charge closes for all.
      if (std::holds_alternative<control::Closed>(event) && i + 1 == state.stewards.size()) {
        state.closed = true;
      }
    }
  }
}

void ControlModel::send(State& state, Mail mail) {
  const auto [found, is_new] =
      numbers_.try_emplace(mail.words, static_cast<std::uint32_t>(mail_.size()));
  const std::uint32_t number = found->second;
  if (is_new) mail_.push_back(std::move(mail));
  fresh_.push_back(number);
  if (std::find(state.sent.begin(), state.sent.end(), number) == state.sent.end()) {
    state.sent.push_back(number);
  }
}

void ControlModel::deliver(State& state, const Mail& mail) {
  if (mail.answer) {
    State::Steward& steward = state.stewards[mail.to];
    return steward.machine.receive(steward.now, *mail.answer);
  }
  const Node& to = mail.order->to;
  if (to.is(Node::Kind::rank)) {
    if (state.ranks[to.number].alive) obey(state, *mail.order);
  } else if (const State::SwitchProcess& machine = state.switches[to.number];
             !machine.cut && machine.life == mail.life) {
    obey(state, *mail.order);
  }
}

void ControlModel::obey(State& state, const Order& order) {
  const bool to_rank = order.to.is(Node::Kind::rank);
  control::Response response = to_rank ? state.ranks[order.to.number].member.take(order)
                                       : state.switches[order.to.number].member.take(order);
  if (response.deed == Deed::begin && to_rank) begins(state, order);
  if (response.deed == Deed::begin && !to_rank) {
    state.begun_at[order.epoch] |= std::uint64_t{1} << order.to.number;
  }
  if (response.deed == Deed::fail) {
    if (state.failed_because && *state.failed_because != order.why) {
      complain(state, "P19: ranks of one session fail for different reasons");
    }
    state.failed_because = order.why;
  }
  if (!response.answer) return;
  if (to_rank && response.answer->kind == Answer::Kind::fenced) {
    response.answer->unsettled = {Seq(state.ranks[order.to.number].position)};
  }
  Mail mail;
  mail.to = order.lease.value - 1;
  mail.words = in_words(*response.answer, mail.to);
  mail.answer = std::move(response.answer);
  send(state, std::move(mail));
}

/// A rank begins an epoch: the first of them when all have left the ones before, at the least of
/// their positions, with switches that have begun it; the others as the first one.
void ControlModel::begins(State& state, const Order& order) {
  const std::string what = name_of(order.to) + " begins epoch " + std::to_string(order.epoch.value);
  const State::Begun begun{order.from, order.servers};
  const auto [known, is_first] = state.begun.try_emplace(order.epoch, begun);
  if (known->second != begun) {
    complain(state, "P15: " + what + ", and another rank has begun another one of that number");
  }
  if (!is_first) return;
  std::uint32_t least = positions;
  for (const State::RankProcess& rank : state.ranks) {
    least = std::min(least, rank.position);
    if (rank.member.epoch() < order.epoch) {
      complain(state, "P15: " + what + " before all ranks are fenced");
    }
  }
  if (order.from != std::vector<Seq>{Seq(least)}) {
    complain(state, "P17: " + what + ", and not where the last of the ranks stands");
  }
  for (const TreeNumber tree : order.servers) {
    for (const SwitchNumber machine : world_.trees[tree.value]) {
      if ((state.begun_at[order.epoch] >> machine.value & 1) == 0) {
        complain(state, "P15: " + what + " before " + name_of(node(machine)));
      }
    }
  }
}

/// P20. A switch that is cut off keeps what it has until it meets its controller again.
void ControlModel::check(State& state) const {
  for (std::uint32_t m = 0; state.closed && m < state.switches.size(); ++m) {
    if (!state.switches[m].cut && state.switches[m].member.find(session) != nullptr) {
      complain(state, "P20: switch " + std::to_string(m) + " has a session that is closed");
    }
  }
}

/// In service at all its ranks and the switches of its tree, or over.
bool ControlModel::is_over(const State& state) const {
  if (state.closing || state.deaths > 0) return state.closed;
  if (!state.stewards.back().machine.serves(session)) return false;
  const Epoch epoch = state.ranks[0].member.epoch();
  const auto serves = [&](const auto* member) {
    return member != nullptr && member->epoch() == epoch && !member->fenced();
  };
  for (const State::RankProcess& rank : state.ranks) {
    if (!serves(&rank.member)) return false;
  }
  const auto begun = state.begun.find(epoch);
  const TreeNumber tree = begun == state.begun.end() ? TreeNumber(0) : begun->second.servers[0];
  const auto& machines = world_.trees[tree.value];
  return std::all_of(machines.begin(), machines.end(), [&](SwitchNumber machine) {
    return serves(state.switches[machine.value].member.find(session));
  });
}

/// What the controller in charge has still to hear.
bool ControlModel::news(const State& state, Action& next) const {
  std::vector<Action> all;
  actions(state, all);
  for (const Action& action : all) {
    const bool of_a_switch = action.kind == Action::Kind::lose || action.kind == Action::Kind::find;
    if (!of_a_switch && action.kind != Action::Kind::report) continue;
    next = action;
    return true;
  }
  return false;
}

End ControlModel::ends(State state, Sent so_far) {
  std::deque<std::uint32_t> under_way;
  if (so_far == Sent::arrives) under_way.assign(state.sent.begin(), state.sent.end());
  const auto take = [&](const Action& action) {
    apply(state, action);
    under_way.insert(under_way.end(), fresh_.begin(), fresh_.end());
  };
  int repeats = 0;
  while (state.wrong.empty()) {
    Action next{};
    if (news(state, next)) {
      take(next);
    } else if (!under_way.empty()) {
      const std::uint32_t mail = under_way.front();
      under_way.pop_front();
      take({Action::Kind::mail, mail});
    } else if (is_over(state)) {
      break;
    } else if (++repeats > repeats_max) {
      complain(state, "I7: without faults it does not end");
    } else {
      for (std::uint32_t i = 0; i < state.stewards.size(); ++i) {
        if (state.stewards[i].machine.deadline() != never) take({Action::Kind::repeat, i});
      }
    }
  }
  return {repeats, state.wrong};
}

std::uint64_t ControlModel::fingerprint(const State& state) const {
  Fingerprint walk;
  for (const State::Steward& steward : state.stewards) {
    steward.machine.fingerprint(walk);
    for (const auto& [machine, life] : steward.lives) walk.number(machine | life << 32);
    walk.number(static_cast<std::uint64_t>(steward.repeated));
  }
  for (const State::RankProcess& rank : state.ranks) {
    rank.member.fingerprint(walk);
    walk.number(rank.position | std::uint64_t{rank.alive} << 32);
  }
  for (const State::SwitchProcess& machine : state.switches) {
    machine.member.fingerprint(walk);
    walk.number(machine.life << 1 | std::uint64_t{machine.cut});
  }
  std::vector<std::uint32_t> sent = state.sent;  // a set: in which order is no matter
  std::sort(sent.begin(), sent.end());
  for (const std::uint32_t mail : sent) walk.number(mail);
  for (const auto& [epoch, begun] : state.begun) {
    walk.number(epoch.value);
    for (const Seq seq : begun.from) walk.number(seq.value);
    for (const TreeNumber tree : begun.servers) walk.number(tree.value);
  }
  for (const auto& [epoch, machines] : state.begun_at) walk.number(epoch.value | machines << 32);
  for (const std::uint32_t rank : state.dead) walk.number(rank);
  walk.number(static_cast<std::uint64_t>(state.losses) | std::uint64_t{state.closing} << 32 |
              std::uint64_t{state.closed} << 33 | std::uint64_t{state.deaths > 0} << 34 |
              std::uint64_t{state.failed_because.has_value()} << 35);
  return walk.value();
}

std::string ControlModel::to_string(const Action& action) const {
  const std::string number = std::to_string(action.which);
  switch (action.kind) {
    case Action::Kind::mail:
      return "arrives: " + mail_[action.which].words;
    case Action::Kind::repeat:
      return "controller " + std::to_string(action.which + 1) + " gives its orders again";
    case Action::Kind::advance:
      return "rank " + number + " settles a fragment";
    case Action::Kind::crash:
      return "switch " + number + " loses all that it has";
    case Action::Kind::cut:
      return "switch " + number + " is cut off from its controller";
    case Action::Kind::lose:
      return "the controller hears that switch " + number + " is lost";
    case Action::Kind::find:
      return "the controller hears that switch " + number + " is there";
    case Action::Kind::succeed:
      return "another controller takes over";
    case Action::Kind::die:
      return "rank " + number + " dies";
    case Action::Kind::report:
      return "the controller hears that rank " + number + " is dead";
    case Action::Kind::close:
      return "the session is closed";
  }
  return "unknown";
}

}  // namespace cais::sim
