// The ranks of the simulated world: what a rank's runtime does for its agent, and what is checked
// whenever a packet reaches one.
#include <algorithm>

#include "base/fingerprint.hpp"
#include "sim/world.hpp"
#include "sim/world_detail.hpp"

namespace cais::sim {
namespace {

using std::chrono::microseconds;

std::uint64_t state_of(const agent::Agent& agent, Instant now) {
  Fingerprint walk;
  agent.fingerprint(now, walk);
  return walk.value();
}

std::uint64_t dropped(const agent::Counters& counters) {
  return counters.dropped_malformed + counters.dropped_tag + counters.dropped_foreign +
         counters.dropped_stale;
}

}  // namespace

std::uint32_t World::endpoint(const RankProcess& node) const {
  return static_cast<std::uint32_t>(&node - ranks_.data());
}

/// The program of a rank: its next collectives, `depth` of them under way, with some time between.
void World::call(RankProcess& node) {
  Group& group = *node.group;
  Group::Member& member = group.members[node.rank.value];
  while (member.called < group.script->calls(node.rank).size() &&
         member.called < group.oracle->done(node.rank) + scenario_.depth) {
    timeline_.after(microseconds(node.rng.below(scenario_.think_us)),
                    [this, &node, &group, op = member.called] {
                      if (node.group == &group && node.agent) describe(node, op);
                    });
    ++member.called;
  }
}

/// P14: the descriptor goes to all switches; the op is submitted once they have it.
void World::describe(RankProcess& node, std::size_t op) {
  Group& group = *node.group;
  const auto delay = [&] { return microseconds(node.rng.below(management_us_max)); };
  Instant known = std::max(timeline_.now(), node.paused_until);
  group.described.push_back(group.script->calls(node.rank)[op]->descriptor);
  for (const auto& each : switches_) {
    if (!group.tree->uses(each->node)) continue;
    const Instant comes = std::max(timeline_.now() + delay(), each->paused_until);
    known = std::max(known, comes);
    timeline_.at(comes, [this, &group, &machine = *each,
                         descriptor = group.script->calls(node.rank)[op]->descriptor] {
      if (!is_current(group) || machine.member.find(group.id()) == nullptr ||
          machine.forsaken.contains(group.id())) {
        return;
      }
      const auto defined = machine.machine.define(group.id(), descriptor);
      if (!defined && !group.closing) fail("P14: " + defined.error().message);
    });
  }
  timeline_.at(known + delay(), [this, &node, &group, op] {
    if (node.group != &group || !node.agent) return;
    group.members[node.rank.value].described[op] = true;
    if (!node.paused(timeline_.now())) submit_described(node);
  });
}

void World::submit_described(RankProcess& node) {
  Group& group = *node.group;
  Group::Member& member = group.members[node.rank.value];
  const auto& calls = group.script->calls(node.rank);
  while (!member.ended && member.submitted < calls.size() && member.described[member.submitted]) {
    const Job& job = *calls[member.submitted];
    tell("rank ", node.rank.value, " of session ", group.id().value, " calls op ", member.submitted,
         ": ", job.descriptor);
    if (job.plan.unit_bytes == 0) report_.reach(Probe::empty_op);
    if (job.plan.lanes > 1) report_.reach(Probe::several_lanes);
    node.agent->submit(job.submits[node.rank.value]);
    group.progress_at = timeline_.now();
    ++member.submitted;
  }
  drain(node);
}

void World::rank_receives(RankProcess& node, const Delivery& packet) {
  if (!node.agent) return;  // its socket is closed
  if (wait_in_inbox(node, packet)) return;
  record(packet, endpoint(node));
  wire::Header header;
  wire::parse(*packet.bytes, header);
  tell("rank ", node.rank.value, " of session ", node.group->id().value, " gets ",
       packet.damaged ? "a damaged " : "", header);
  const agent::Counters before = node.agent->counters();
  const bool compared = compares(node.group->config.window_fragments);
  const std::uint64_t state = compared ? state_of(*node.agent, timeline_.now()) : 0;
  node.agent->receive(timeline_.now(), *packet.bytes);
  const agent::Counters& after = node.agent->counters();
  if (compared && after.accepted == before.accepted &&
      state_of(*node.agent, timeline_.now()) != state) {
    fail("I6: a packet that rank " + std::to_string(node.rank.value) +
         " refused changed it: " + wire::to_string(header));
  }
  check_agent(node, packet, before);
  drain(node);
}

void World::check_agent(RankProcess& node, const Delivery& packet, const agent::Counters& before) {
  const agent::Counters& after = node.agent->counters();
  if (after.received != after.accepted + dropped(after) || after.received != before.received + 1) {
    fail("I8: rank " + std::to_string(node.rank.value) + " has lost count of its packets");
  }
  if (packet.damaged && after.accepted != before.accepted) {
    fail("P13: rank " + std::to_string(node.rank.value) + " takes a damaged packet");
  }
  const Duration round_trip = node.agent->smoothed_rtt();
  if (round_trip != Duration(0) && round_trip < 2 * microseconds(scenario_.delay_us)) {
    fail("P2: rank " + std::to_string(node.rank.value) +
         " believes in a round trip that is shorter than the way");
  }
  report_.reach(Probe::stale_at_rank, after.dropped_stale - before.dropped_stale);
  if (packet.damaged) report_.reach(Probe::damage_at_rank);
  wire::Header header;
  if (packet.damaged || wire::parse(*packet.bytes, header) != wire::ParseError::none) return;
  if (header.kind == wire::Kind::no_session) return;
  const bool foreign = header.epoch != node.member.epoch() || node.member.fenced();
  if (foreign) report_.reach(Probe::foreign_epoch);
  if (foreign && after.dropped_foreign == before.dropped_foreign) {
    fail("I4: rank " + std::to_string(node.rank.value) +
         " does not see that a packet is of another epoch");
  }
  if (!foreign && after.dropped_foreign + after.dropped_tag + after.dropped_malformed !=
                      before.dropped_foreign + before.dropped_tag + before.dropped_malformed) {
    fail("rank " + std::to_string(node.rank.value) +
         " refuses what the switch sent it: " + wire::to_string(header));
  }
}

void World::drain(RankProcess& node) {
  agent::Transmit out;
  while (node.agent && node.agent->poll_transmit(timeline_.now(), out)) send_to_switch(node, out);
  agent::Event event;
  while (node.agent && node.agent->poll_event(event)) take_event(node, event);
}

void World::send_to_switch(RankProcess& node, const agent::Transmit& out) {
  Group& group = *node.group;
  std::vector<std::byte> packet = joined(out.header, out.payload, out.padding);
  wire::Header header;
  const bool readable =
      wire::parse(packet, header) == wire::ParseError::none &&
      wire::tag_is_right(packet, group.keys(header.epoch), group.round_of(header));
  if (!readable || header.session != group.id() || header.epoch != node.member.epoch() ||
      node.member.fenced() || header.lane != out.lane || header.lane.value >= group.config.lanes) {
    return fail("rank " + std::to_string(node.rank.value) + " sends what is not of its session");
  }
  group.oracle->rank_sends(node.rank, header,
                           std::span<const std::byte>(packet).subspan(wire::header_bytes));
  take_complaint(group);
  tell("rank ", node.rank.value, " of session ", group.id().value, " sends ", header);
  if ((header.flags & wire::flag_final) != 0) report_.reach(Probe::sum_contributed);
  const auto place = group.script->place(node.rank, header.lane, header.seq);
  if (place && place->op < group.oracle->done(node.rank)) report_.reach(Probe::done_op_asked_for);
  const std::size_t plane = node.servers[header.lane.value].value;
  const std::size_t which = at_node(plane, group.tree->leaf_of(node.rank));
  const std::size_t way = link(endpoint(node), plane, true);
  const auto arrive = [this, which](const Delivery& arrived) { switch_receives(which, arrived); };
  if (impostor_strikes()) {
    carry(way, packet, arrive, endpoint(node) + static_cast<std::uint32_t>(ranks_.size()));
  }
  carry(way, std::move(packet), arrive, endpoint(node));
}

void World::take_event(RankProcess& node, const agent::Event& event) {
  Group& group = *node.group;
  if (std::holds_alternative<agent::NoSession>(event)) {
    tell("rank ", node.rank.value, " of session ", group.id().value,
         " hears that its switch has no such session");
    return report_.reach(Probe::denied);
  }
  group.progress_at = timeline_.now();
  ++report_.ops;
  if (const auto* done = std::get_if<agent::Done>(&event)) {
    tell("rank ", node.rank.value, " of session ", group.id().value, " has done op ", done->op);
    group.oracle->rank_is_done(node.rank, done->op);
    take_complaint(group);
    if (failure_.empty() && !group.script->calls(node.rank)[done->op]->right(node.rank.value)) {
      fail("I1: the output of op " + std::to_string(done->op) + " at rank " +
           std::to_string(node.rank.value) + " of session " + std::to_string(group.id().value) +
           " is not the reference's");
    }
    call(node);
  } else {
    const auto& told = std::get<agent::Mismatched>(event);
    tell("rank ", node.rank.value, " of session ", group.id().value, " is refused at op ", told.op);
    group.oracle->rank_is_refused(node.rank, told, group.members[node.rank.value].submitted);
    take_complaint(group);
    group.members[node.rank.value].ended = true;
    if (scenario_.switches > 1 || scenario_.controlled != 0) end_by_management(group, told);
  }
  close_when_over(group);
}

/// Only the switch that found the mismatch refuses, and only as long as it has the session; the
/// other ranks hear of it from the one that heard first, over the management channel.
void World::end_by_management(Group& group, const agent::Mismatched& told) {
  const std::uint64_t session = group.id().value - 1;
  for (std::uint16_t r = 0; r < group.config.ranks; ++r) {
    RankProcess& node = ranks_[session * ranks_max + r];
    const Instant hears = std::max(timeline_.now(), node.paused_until) +
                          microseconds(node.rng.below(management_us_max));
    timeline_.at(hears, [this, &node, &group, told] {
      if (node.group != &group || !node.agent || group.oracle->refused(node.rank)) return;
      report_.reach(Probe::refused_by_management);
      agent::Mismatched here = told;
      here.op = group.oracle->done(node.rank);
      group.members[node.rank.value].ended = true;
      group.oracle->rank_is_refused(node.rank, here, 0);
      take_complaint(group);
      node.agent.reset();
      group.progress_at = timeline_.now();
      close_when_over(group);
    });
  }
}

}  // namespace cais::sim
