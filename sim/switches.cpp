// The switches of the simulated world: what a switch's worker does for its machine, and what is
// checked whenever a packet reaches one.
#include <cstring>
#include <numeric>

#include "base/fingerprint.hpp"
#include "sim/world.hpp"
#include "sim/world_detail.hpp"

namespace cais::sim {
namespace {

using std::chrono::microseconds;
using switching::Drop;

constexpr std::uint64_t batch_us_max = 20;  // how long a worker may gather packets

std::uint64_t state_of(const switching::Switch& machine) {
  Fingerprint walk;
  machine.fingerprint(walk);
  return walk.value();
}

std::string named(Drop drop, const wire::Header& header) {
  return std::string(switching::to_string(drop)) + ": " + wire::to_string(header);
}

bool comes_down(wire::Kind kind) {
  return kind != wire::Kind::contribution && kind != wire::Kind::want;
}

}  // namespace

/// What a switch may take without becoming another one: what it drops (P13), what it has (I6),
/// questions, and what its parent says of them.
bool World::changes_nothing(Drop drop, const wire::Header& header, bool was_there) const {
  if (drop == Drop::mismatch) return false;
  return drop != Drop::none || was_there || header.kind == wire::Kind::want ||
         header.kind == wire::Kind::nak || header.kind == wire::Kind::waiting;
}

/// The session at a switch that lives, with all that the management knows of it (P14).
void World::open_at(std::size_t which, Group& group, Epoch epoch) {
  SwitchProcess& node = *switches_[which];
  switching::SessionConfig config = group.config_at(which, node.node);
  config.epoch = epoch;
  if (auto opened = node.machine.open(config); !opened) fail(opened.error().message);
  for (const auto& descriptor : group.described) {
    if (auto defined = node.machine.define(group.id(), descriptor); !defined) {
      fail("P14: " + defined.error().message);
    }
  }
  bind_at(which, group);
}

/// P9: a switch knows where its children speak from, and its parent.
void World::bind_at(std::size_t which, const Group& group) {
  SwitchProcess& here = *switches_[which];
  const auto check = [this](const Result<void>& done) {
    if (!done) fail(done.error().message);
  };
  const Tree::Node& place = group.tree->node(here.node);
  if (place.parent) {
    const std::uint32_t parent = endpoint_of(at_node(here.plane, *place.parent));
    check(here.machine.bind_parent(group.id(), switching::Port(parent)));
  }
  for (const std::size_t child : group.tree->switches_below(here.node)) {
    check(here.machine.bind(group.id(), least(group.tree->node(child).members),
                            switching::Port(endpoint_of(at_node(here.plane, child)))));
  }
  const std::uint64_t first = (group.id().value - 1) * ranks_max;
  for (std::uint16_t r = 0; place.level == 1 && r < group.config.ranks; ++r) {
    if ((place.members >> r & 1) == 0) continue;
    const auto port = static_cast<std::uint32_t>(first + r);
    check(here.machine.bind(group.id(), Rank(r), switching::Port(port)));
  }
}

/// The group that the switch serves in the lane and epoch of the packet.
Group* World::served(std::size_t which, const wire::Header& header) {
  const std::uint64_t index = header.session.value - 1u;
  if (index >= groups_.size() || !groups_[index] || groups_[index]->closed) return nullptr;
  Group& group = *groups_[index];
  const auto service = group.services.find(which);
  const bool here = header.lane.value < group.config.lanes && service != group.services.end() &&
                    service->second.epoch == header.epoch &&
                    (service->second.lanes >> header.lane.value & 1) != 0;
  return here ? &group : nullptr;
}

/// What comes of it is the ranks' to refuse (I4).
void World::forsaken_receives(std::size_t which, const Delivery& packet) {
  SwitchProcess& node = *switches_[which];
  node.machine.receive(switching::Port(packet.from), Packet{*packet.bytes, {}});
  report_.reach(Probe::forsaken);
  drain(which);
}

void World::switch_receives(std::size_t which, const Delivery& packet) {
  SwitchProcess& node = *switches_[which];
  if (node.crashed || wait_in_inbox(node, packet)) return;
  record(packet, static_cast<std::uint32_t>(1u << 31 | which));
  wire::Header header;
  wire::parse(*packet.bytes, header);
  if (node.forsaken.contains(header.session)) return forsaken_receives(which, packet);
  Group* group = served(which, header);
  const bool was_there =
      group != nullptr && header.kind == wire::Kind::contribution &&
      header.rank.value < group->config.ranks && header.lane.value < group->config.lanes &&
      group->oracle->contributed(node.node, header.rank, header.lane, header.seq);

  const bool compared = compares(scenario_.window * scenario_.lanes * scenario_.ranks);
  if (compared) drain(which);
  const std::uint64_t state = compared ? state_of(node.machine) : 0;

  // Half of the packets come in a buffer that may be kept, as long as there is one.
  Packet received{*packet.bytes, {}};
  if (node.rng.chance(0.5)) received.owner = node.pool.acquire();
  if (received.owner) {
    std::memcpy(received.owner.data(), packet.bytes->data(), packet.bytes->size());
    received.bytes = {received.owner.data(), packet.bytes->size()};
    report_.reach(Probe::kept_in_buffers);
  }
  const Drop drop = node.machine.receive(switching::Port(packet.from), std::move(received));
  tell("switch ", which, " gets ", packet.damaged ? "a damaged " : "", header, " of endpoint ",
       packet.from, ": ", switching::to_string(drop));

  if (drop == Drop::none && group != nullptr) note_taken(which, *group, header, was_there);
  check_switch(which, packet, drop);
  if (compared && changes_nothing(drop, header, was_there)) {
    switching::Transmit out;
    const bool asks = drop == Drop::unknown_session && header.kind == wire::Kind::want;  // P16
    const bool silent = drop == Drop::none || asks || !node.machine.poll_transmit(out);
    drain(which);
    if (!silent || state_of(node.machine) != state) {
      fail("I6: a packet that should change nothing did, or was answered: " + named(drop, header));
    }
    return;
  }
  // Sometimes several packets are taken before any is sent, as in a batch from the kernel.
  if (node.rng.chance(0.5)) return drain(which);
  report_.reach(Probe::taken_in_batches);
  if (node.drain_planned) return;
  node.drain_planned = true;
  timeline_.after(microseconds(node.rng.below(batch_us_max)), [this, which] {
    switches_[which]->drain_planned = false;
    drain(which);
  });
}

void World::note_taken(std::size_t which, Group& group, const wire::Header& header,
                       bool was_there) {
  const std::size_t node = switches_[which]->node;
  if (header.kind == wire::Kind::want) return report_.reach(Probe::want_answered);
  if (header.kind == wire::Kind::waiting) return report_.reach(Probe::answered_from_above);
  if (header.kind == wire::Kind::nak) return report_.reach(Probe::nak_from_above);
  if (was_there) return report_.reach(Probe::repeat_answered);
  if (header.kind != wire::Kind::contribution) {
    group.oracle->switch_hears(node, header);
    return;
  }
  group.oracle->switch_takes(node, header);
  group.progress_at = timeline_.now();
  take_complaint(group);
  const std::size_t index = group.script->index(header.seq);
  if (index >= 2 * group.config.window_fragments) report_.reach(Probe::slot_reused);
  if (header.seq.value < group.config.first_seq.value) report_.reach(Probe::seq_wrapped);
}

void World::check_switch(std::size_t which, const Delivery& packet, Drop drop) {
  const switching::Switch& machine = switches_[which]->machine;
  wire::Header header;
  const bool readable = wire::parse(*packet.bytes, header) == wire::ParseError::none;
  check_counters(machine.counters());
  if (packet.damaged) {
    report_.reach(Probe::damage_at_switch);
    if (drop == Drop::none || drop == Drop::mismatch) fail("P13: a switch takes a damaged packet");
    return;
  }
  const Group* group = served(which, header);
  if (is_impostor(packet.from)) {
    if (drop == Drop::none || drop == Drop::mismatch)
      fail("P13: a switch takes an impostor's packet");
    return;
  }
  const bool at_home =
      group != nullptr && (packet.from >= ranks_.size() || ranks_[packet.from].group == group);
  switch (drop) {
    case Drop::none:
      if (!readable || !at_home) fail("I4: a switch takes a packet of a session that is over");
      break;
    case Drop::unknown_session:
      report_.reach(Probe::foreign_session);
      break;
    case Drop::wrong_epoch:
      report_.reach(Probe::foreign_epoch);
      break;
    case Drop::stale_seq:
      report_.reach(comes_down(header.kind) ? Probe::stale_from_above : Probe::stale_at_switch);
      break;
    case Drop::mismatch:
      if (group == nullptr || scenario_.mismatch == 0) {
        fail("P12: a session is refused whose ranks call the same");
      }
      report_.reach(Probe::mismatch_found);
      if (machine.counters().dropped[static_cast<std::size_t>(Drop::mismatch)] > 1) {
        report_.reach(Probe::refused_again);
      }
      break;
    case Drop::wrong_place:
      // Behind the op that a rank calls otherwise, the same one lies elsewhere.
      if (scenario_.mismatch != 0) break;
      [[fallthrough]];
    default:
      // Late packets of an earlier life are told by their epoch, before anything else.
      fail("a switch refuses what one of the session sent: " + named(drop, header));
  }
  check_slots(which);
}

void World::check_counters(const switching::Counters& counters) {
  const std::uint64_t all =
      std::accumulate(std::begin(counters.dropped), std::end(counters.dropped), counters.accepted);
  if (counters.received != all) fail("I8: a switch has lost count of its packets");
  if (counters.transmits_lost != 0) fail("a switch's queue ran over");
}

void World::drain(std::size_t which) {
  SwitchProcess& node = *switches_[which];
  if (node.paused(timeline_.now()) || node.crashed) return;
  switching::Transmit out;
  while (node.machine.poll_transmit(out)) {
    for (const switching::Port port : out.ports) send(which, out, port);
  }
  switching::Event event;
  while (node.machine.poll_event(event)) {
    if (const auto* bad = std::get_if<switching::ViolationEvent>(&event)) {
      fail("P6: rank " + std::to_string(bad->rank.value) + " is said to break its window at seq " +
           std::to_string(bad->seq.value));
    }
  }
}

void World::send(std::size_t which, const switching::Transmit& out, switching::Port port) {
  std::vector<std::byte> packet = joined(out.header, out.payload);
  wire::Header header;
  const bool readable = wire::parse(packet, header) == wire::ParseError::none;
  Group* group = readable ? served(which, header) : nullptr;
  const bool to_rank = port.value < ranks_.size();
  if (readable && header.kind == wire::Kind::no_session) {
    // One that has been opened meanwhile lives in later epochs than the question.
    const control::Member* const has = switches_[which]->member.find(header.session);
    if (has != nullptr && groups_[header.session.value - 1]->lives_in(header.epoch)) {
      fail("P16: a switch denies a session that it has");
    }
    if (!to_rank) return;  // to an impostor, or to a switch below, which need not know
    return carry_to_rank(which, std::move(packet), ranks_[port.value]);
  }
  const std::size_t first_switch = endpoint_of(0);
  if (readable && switches_[which]->forsaken.contains(header.session)) {
    if (!to_rank) {
      return carry_to_switch(which, std::move(packet), port.value - first_switch,
                             endpoint_of(which));
    }
    return carry_to_rank(which, std::move(packet), ranks_[port.value]);
  }
  if (!to_rank && (port.value < first_switch || port.value >= first_switch + switches_.size())) {
    return fail("a switch sends to a port that nobody has");
  }
  if (group == nullptr || (to_rank && ranks_[port.value].group != group) ||
      header.lane.value >= group->config.lanes ||
      !wire::tag_is_right(packet, group->keys(header.epoch), group->round_of(header))) {
    return fail("I3: a switch sends endpoint " + std::to_string(port.value) +
                " what is not of its session: " + wire::to_string(header));
  }
  if (to_rank) return send_to_rank(which, *group, header, std::move(packet), ranks_[port.value]);
  send_to_switch(which, *group, header, std::move(packet), port.value - first_switch);
}

void World::send_to_rank(std::size_t which, Group& group, const wire::Header& header,
                         std::vector<std::byte> packet, RankProcess& to) {
  const SwitchProcess& here = *switches_[which];
  group.oracle->switch_sends(here.node, to.rank, header,
                             std::span<const std::byte>(packet).subspan(wire::header_bytes));
  take_complaint(group);
  count_sent(header, false);
  tell("switch ", which, " sends rank ", to.rank.value, " of session ", group.id().value, " ",
       header);
  carry_to_rank(which, std::move(packet), to);
}

void World::carry_to_rank(std::size_t which, std::vector<std::byte> packet, RankProcess& to) {
  carry(
      link(endpoint(to), switches_[which]->plane, false), std::move(packet),
      [this, &to](const Delivery& arrived) { rank_receives(to, arrived); }, endpoint_of(which));
}

/// P9: its parent, or a child.
void World::send_to_switch(std::size_t which, Group& group, const wire::Header& header,
                           std::vector<std::byte> packet, std::size_t to) {
  const SwitchProcess& here = *switches_[which];
  const SwitchProcess& there = *switches_[to];
  if (there.plane != here.plane) return fail("P9: a switch sends to another plane");
  const bool up = group.tree->node(here.node).parent == there.node;
  const std::span<const std::byte> payload = std::span(packet).subspan(wire::header_bytes);
  if (up) {
    group.oracle->switch_sends_up(here.node, header, payload);
  } else {
    group.oracle->switch_sends_down(here.node, there.node, header, payload);
  }
  take_complaint(group);
  count_sent(header, up);
  tell("switch ", which, " sends switch ", to, " ", header);
  if (impostor_strikes()) {
    carry_to_switch(which, packet, to,
                    endpoint_of(which) + static_cast<std::uint32_t>(switches_.size()));
  }
  carry_to_switch(which, std::move(packet), to, endpoint_of(which));
}

/// A switch has a greater number than those below it.
void World::carry_to_switch(std::size_t which, std::vector<std::byte> packet, std::size_t to,
                            std::uint32_t from) {
  carry(
      link_above(std::min(which, to), to > which), std::move(packet),
      [this, to](const Delivery& arrived) { switch_receives(to, arrived); }, from);
}

void World::count_sent(const wire::Header& header, bool up) {
  if (header.kind == wire::Kind::nak) report_.reach(Probe::nak_sent);
  if (header.kind == wire::Kind::waiting) report_.reach(Probe::waiting_sent);
  if (header.kind == wire::Kind::done && header.chunk > 1) report_.reach(Probe::done_for_many);
  if (up && header.kind == wire::Kind::want) report_.reach(Probe::asked_above);
  if (up && header.kind == wire::Kind::mismatch) report_.reach(Probe::mismatch_told_above);
  if (up && (header.flags & wire::flag_final) != 0) report_.reach(Probe::final_partial);
  if (header.level == 2) report_.reach(Probe::three_levels);
}

}  // namespace cais::sim
