#include "core/control/controller.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace cais::control {
namespace {

Error refused(std::string what) { return {ErrorCode::invalid_argument, std::move(what)}; }

/// By lane the least of all ranks' (P17).
std::vector<Seq> least_of(const std::vector<std::vector<Seq>>& unsettled) {
  std::vector<Seq> least;
  for (const std::vector<Seq>& of_rank : unsettled) {
    if (least.empty()) least = of_rank;
    for (std::size_t l = 0; l < of_rank.size(); ++l) {
      if (before(of_rank[l], least[l])) least[l] = of_rank[l];
    }
  }
  return least;
}

/// The switches of the trees that serve some lane.
std::set<SwitchNumber> machines_of(const SessionSpec& spec,
                                   const std::vector<TreeNumber>& servers) {
  std::set<SwitchNumber> machines;
  for (const TreeNumber tree : servers) {
    machines.insert(spec.trees[tree.value].begin(), spec.trees[tree.value].end());
  }
  return machines;
}

Result<void> validate(const SessionSpec& spec) {
  const std::string name = "session " + std::to_string(spec.session.value);
  if (spec.ranks == 0 || spec.ranks > ranks_max) {
    return refused(name + " has 1 to " + std::to_string(ranks_max) + " ranks, not " +
                   std::to_string(spec.ranks));
  }
  if (spec.servers.empty()) return refused(name + " has no lanes");
  std::set<SwitchNumber> seen;
  for (const std::vector<SwitchNumber>& tree : spec.trees) {
    if (tree.empty()) return refused(name + " has a tree without switches");
    for (const SwitchNumber machine : tree) {
      if (!seen.insert(machine).second) {
        return refused("switch " + std::to_string(machine.value) + " has two places in " + name);
      }
    }
  }
  std::vector<TreeNumber> named = spec.servers;
  if (spec.fallback) named.push_back(*spec.fallback);
  for (const TreeNumber tree : named) {
    if (tree.value >= spec.trees.size()) {
      return refused(name + " has " + std::to_string(spec.trees.size()) +
                     " trees, numbered from 0, and none of them is " + std::to_string(tree.value));
    }
  }
  return {};
}

}  // namespace

const char* to_string(Order::Kind kind) {
  switch (kind) {
    case Order::Kind::fence:
      return "fence";
    case Order::Kind::begin:
      return "begin";
    case Order::Kind::fail:
      return "fail";
    case Order::Kind::close:
      return "close";
  }
  return "unknown";
}

const char* to_string(Answer::Kind kind) {
  switch (kind) {
    case Answer::Kind::fenced:
      return "fenced";
    case Answer::Kind::begun:
      return "begun";
    case Answer::Kind::failed:
      return "failed";
    case Answer::Kind::closed:
      return "closed";
    case Answer::Kind::ahead:
      return "ahead";
    case Answer::Kind::stale:
      return "stale";
    case Answer::Kind::refused:
      return "refused";
  }
  return "unknown";
}

Controller::Controller(Lease lease, Duration retry) : lease_(lease), retry_(retry) {}

Result<void> Controller::open(const SessionSpec& spec) {
  if (sessions_.contains(spec.session)) {
    return refused("session " + std::to_string(spec.session.value) + " is open already");
  }
  if (auto valid = validate(spec); !valid) return valid;
  Session& session = sessions_[spec.session];
  session.spec = spec;
  session.epoch = spec.epoch;
  session.servers = spec.servers;
  session.placed = machines_of(spec, spec.servers);
  return {};
}

Result<void> Controller::adopt(Instant now, const SessionSpec& spec) {
  if (Result<void> opened = open(spec); !opened) return opened;
  Session& session = sessions_[spec.session];
  for (const auto& tree : spec.trees) session.placed.insert(tree.begin(), tree.end());
  next_epoch(now, session, spec.epoch);
  return {};
}

void Controller::close(Instant now, SessionId id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  enter(now, found->second, Phase::closing, living(found->second, found->second.placed));
  forget_closed();
}

void Controller::switch_found(Instant now, SwitchNumber machine, std::uint64_t life) {
  const auto known = machines_.find(machine);
  if (known != machines_.end()) {
    if (known->second == life) return;
    switch_lost(now, machine, known->second);  // before anybody saw it
  }
  machines_[machine] = life;
  for (auto& [id, session] : sessions_) {
    if (session.phase == Phase::fencing) {
      advance(now, session);  // it may have waited for one
    } else if (session.fallen_back && session.phase < Phase::failing &&
               !living_trees(session).empty()) {
      next_epoch(now, session, session.epoch);
    }
  }
}

void Controller::switch_lost(Instant now, SwitchNumber machine, std::uint64_t life) {
  const auto known = machines_.find(machine);
  if (known == machines_.end() || known->second != life) return;
  machines_.erase(known);
  for (auto& [id, session] : sessions_) lose(now, session, machine);
  forget_closed();
}

void Controller::lose(Instant now, Session& session, SwitchNumber machine) {
  session.placed.erase(machine);
  const bool serves = machines_of(session.spec, session.servers).contains(machine);
  switch (session.phase) {
    case Phase::serving:
    case Phase::placing:
    case Phase::beginning:
      if (!serves) return;
      return next_epoch(now, session, session.epoch);
    case Phase::fencing:  // the ranks are fenced without it: nothing that it holds can be applied
    case Phase::closing:
      session.awaited.erase(node(machine));
      return advance(now, session);
    case Phase::failing:
    case Phase::over:
      return;
  }
}

void Controller::rank_lost(Instant now, SessionId id, Rank rank, const std::string& who) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  Session& session = found->second;
  session.lost.insert(node(rank));
  session.awaited.erase(node(rank));
  if (session.phase < Phase::failing) {
    fail(now, session, who + " has died");
  } else {
    advance(now, session);
  }
  forget_closed();
}

void Controller::receive(Instant now, const Answer& answer) {
  if (answer.kind == Answer::Kind::stale && answer.lease > lease_ && !superseded_) {
    superseded_ = true;
    sessions_.clear();
    orders_.clear();
    events_.push_back(Superseded{answer.lease});
  }
  const auto found = sessions_.find(answer.session);
  if (found == sessions_.end() || answer.lease != lease_) return;
  take(now, found->second, answer);
  forget_closed();
}

void Controller::take(Instant now, Session& session, const Answer& answer) {
  if (answer.kind == Answer::Kind::ahead && session.phase < Phase::failing) {
    // Another controller has begun this epoch or a later one somewhere.
    if (answer.epoch < session.epoch) return;  // answers an order from before
    return next_epoch(now, session, answer.epoch);
  }
  if (answer.epoch != session.epoch || !session.awaited.contains(answer.from)) return;
  switch (session.phase) {
    case Phase::serving:
    case Phase::over:
      return;
    case Phase::fencing:
      if (answer.kind != Answer::Kind::fenced) return;
      if (answer.from.is(Node::Kind::rank)) {
        if (answer.unsettled.size() != session.spec.servers.size()) return;
        session.unsettled[answer.from.number] = answer.unsettled;
      }
      break;
    case Phase::placing:
    case Phase::beginning:
      if (answer.kind == Answer::Kind::refused) {
        return fail(now, session, "the session cannot go on in another epoch: " + answer.why);
      }
      if (answer.kind != Answer::Kind::begun) return;
      break;
    case Phase::failing:
      if (answer.kind != Answer::Kind::failed) return;
      break;
    case Phase::closing:
      if (answer.kind != Answer::Kind::closed) return;
      break;
  }
  session.awaited.erase(answer.from);
  advance(now, session);
}

/// What follows once nobody is waited for any more.
void Controller::advance(Instant now, Session& session) {
  if (!session.awaited.empty()) return;
  switch (session.phase) {
    case Phase::serving:
    case Phase::over:
      return;
    case Phase::fencing: {
      if (!place(session)) {
        session.retry_at = never;
        if (!std::exchange(session.told_stranded, true)) {
          events_.push_back(Stranded{session.spec.session});
        }
        return;  // until a tree lives
      }
      session.told_stranded = false;
      session.from = least_of(session.unsettled);
      const std::set<SwitchNumber> machines = machines_of(session.spec, session.servers);
      session.placed.insert(machines.begin(), machines.end());
      return enter(now, session, Phase::placing, living(session, machines));
    }
    case Phase::placing:
      return enter(now, session, Phase::beginning, ranks_of(session));
    case Phase::beginning:
      session.phase = Phase::serving;
      session.retry_at = never;
      if (session.fallen_back) {
        events_.push_back(FellBack{session.spec.session, session.epoch, session.from});
      } else {
        events_.push_back(Resumed{session.spec.session, session.epoch});
      }
      return;
    case Phase::failing:
      events_.push_back(Failed{session.spec.session, session.why});
      return enter(now, session, Phase::closing, living(session, session.placed));
    case Phase::closing:
      events_.push_back(Closed{session.spec.session});
      session.phase = Phase::over;
      return;
  }
}

void Controller::next_epoch(Instant now, Session& session, Epoch after) {
  if (after.value == std::numeric_limits<decltype(after.value)>::max()) {
    return fail(now, session, "the session has used up its epochs");
  }
  session.epoch = Epoch(static_cast<std::uint16_t>(after.value + 1));
  session.unsettled.assign(session.spec.ranks, {});
  std::set<Node> all = living(session, session.placed);
  all.merge(ranks_of(session));
  enter(now, session, Phase::fencing, std::move(all));
}

void Controller::fail(Instant now, Session& session, std::string why) {
  session.why = std::move(why);
  enter(now, session, Phase::failing, ranks_of(session));
}

void Controller::enter(Instant now, Session& session, Phase phase, std::set<Node> awaited) {
  session.phase = phase;
  session.awaited = std::move(awaited);
  session.retry_at = now + retry_;
  order(session);
  advance(now, session);
}

void Controller::order(const Session& session) {
  for (const Node& to : session.awaited) {
    Order order{};
    order.kind = session.phase == Phase::fencing   ? Order::Kind::fence
                 : session.phase == Phase::failing ? Order::Kind::fail
                 : session.phase == Phase::closing ? Order::Kind::close
                                                   : Order::Kind::begin;
    order.lease = lease_;
    order.number = ++ordered_;
    order.session = session.spec.session;
    order.epoch = session.epoch;
    order.to = to;
    if (order.kind == Order::Kind::begin) {
      order.from = session.from;
      order.servers = session.servers;
    }
    if (order.kind == Order::Kind::fail) order.why = session.why;
    orders_.push_back(std::move(order));
  }
}

std::set<Node> Controller::ranks_of(const Session& session) const {
  std::set<Node> ranks;
  for (std::uint16_t r = 0; r < session.spec.ranks; ++r) {
    if (!session.lost.contains(node(Rank(r)))) ranks.insert(node(Rank(r)));
  }
  return ranks;
}

std::set<Node> Controller::living(const Session& session,
                                  const std::set<SwitchNumber>& machines) const {
  const SessionSpec& spec = session.spec;
  const std::set<SwitchNumber> embedded =
      spec.fallback ? machines_of(spec, {*spec.fallback}) : std::set<SwitchNumber>{};
  std::set<Node> alive;
  for (const SwitchNumber machine : machines) {
    if (machines_.contains(machine) || embedded.contains(machine)) alive.insert(node(machine));
  }
  return alive;
}

/// Of a tree that is not in a rank's process.
bool Controller::lives(const Session& session, TreeNumber tree) const {
  const auto& machines = session.spec.trees[tree.value];
  return std::all_of(machines.begin(), machines.end(),
                     [this](SwitchNumber machine) { return machines_.contains(machine); });
}

std::vector<TreeNumber> Controller::living_trees(const Session& session) const {
  std::vector<TreeNumber> alive;
  for (std::uint32_t t = 0; t < session.spec.trees.size(); ++t) {
    if (lives(session, TreeNumber(t))) alive.emplace_back(t);
  }
  return alive;
}

void Controller::forget_closed() {
  std::erase_if(sessions_, [](const auto& each) { return each.second.phase == Phase::over; });
}

/// Every lane goes to the tree that it had at first, if that lives; else they are dealt out. P18:
/// where no tree lives, all go to the rank that embeds one.
bool Controller::place(Session& session) const {
  const std::vector<TreeNumber> alive = living_trees(session);
  session.fallen_back = alive.empty() && session.spec.fallback;
  if (session.fallen_back) {
    session.servers.assign(session.servers.size(), *session.spec.fallback);
    return true;
  }
  if (alive.empty()) return false;
  for (std::size_t lane = 0; lane < session.servers.size(); ++lane) {
    const TreeNumber first = session.spec.servers[lane];
    session.servers[lane] = lives(session, first) ? first : alive[lane % alive.size()];
  }
  return true;
}

bool Controller::poll(Order& out) {
  if (orders_.empty()) return false;
  out = std::move(orders_.front());
  orders_.pop_front();
  return true;
}

bool Controller::poll_event(Event& out) {
  if (events_.empty()) return false;
  out = std::move(events_.front());
  events_.pop_front();
  return true;
}

Instant Controller::deadline() const {
  Instant first = never;
  for (const auto& [id, session] : sessions_) first = std::min(first, session.retry_at);
  return first;
}

void Controller::timeout(Instant now) {
  for (auto& [id, session] : sessions_) {
    if (session.retry_at > now) continue;
    session.retry_at = now + retry_;
    order(session);
  }
}

bool Controller::serves(SessionId session) const {
  const auto found = sessions_.find(session);
  return found != sessions_.end() && found->second.phase == Phase::serving;
}

void Controller::fingerprint(Fingerprint& walk) const {
  const auto node = [&](const Node& each) {
    walk.number(static_cast<std::uint64_t>(each.kind) | std::uint64_t{each.number} << 8);
  };
  walk.number(ordered_ << 1 | std::uint64_t{superseded_});
  for (const auto& [machine, life] : machines_) {
    walk.number(machine.value);
    walk.number(life);
  }
  walk.number(sessions_.size());
  for (const auto& [id, session] : sessions_) {
    walk.number(id.value);
    walk.number(
        session.epoch.value | std::uint64_t{static_cast<std::uint8_t>(session.phase)} << 16 |
        std::uint64_t{session.told_stranded} << 24 | std::uint64_t{session.fallen_back} << 25 |
        std::uint64_t{session.retry_at != never} << 26 |
        std::uint64_t{session.awaited.size()} << 32 | std::uint64_t{session.lost.size()} << 48);
    for (const Node& each : session.awaited) node(each);
    for (const Node& each : session.lost) node(each);
    for (const std::vector<Seq>& of_rank : session.unsettled) {
      walk.number(of_rank.size());
      for (const Seq seq : of_rank) walk.number(seq.value);
    }
    for (const Seq seq : session.from) walk.number(seq.value);
    for (const TreeNumber tree : session.servers) walk.number(tree.value);
    walk.number(session.placed.size());
    for (const SwitchNumber machine : session.placed) walk.number(machine.value);
  }
}

}  // namespace cais::control
