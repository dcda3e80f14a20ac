#include "sim/group.hpp"

#include "base/check.hpp"
#include "wire/bytes.hpp"

namespace cais::sim {
namespace {

constexpr std::uint64_t epochs_per_life = 4096;

/// A collective that nobody else calls at this place.
wire::DescriptorSpec another_spec(Rng& rng, const Shape& shape, const Job& than) {
  while (true) {
    const wire::DescriptorSpec spec = random_spec(rng, shape);
    const auto descriptor = wire::make_descriptor(spec);
    if (descriptor && wire::hash(*descriptor) != wire::hash(than.descriptor)) return spec;
  }
}

/// Nobody in the simulator guesses: a word is as good as four.
wire::Secret random_secret(Rng& rng) {
  wire::Secret secret;
  wire::store_network(secret.bytes.data(), rng.next());
  return secret;
}

}  // namespace

Group::Group(const Scenario& scenario, std::uint64_t index, std::uint64_t which_life)
    : retains(scenario.controlled != 0),
      life(which_life),
      rng(numbers(scenario.seed, Purpose::group, index << 32 | which_life)) {
  // The first session has the scenario's full size, so that a smaller number makes a smaller run.
  const auto drawn = [&](std::uint64_t most) {
    const std::uint64_t some = 1 + rng.below(most);
    return index == 0 ? most : some;
  };
  Shape shape{};
  shape.ranks = static_cast<std::uint16_t>(drawn(scenario.ranks));
  shape.lanes = static_cast<std::uint8_t>(drawn(scenario.lanes));
  shape.payload_bytes_max = static_cast<std::uint32_t>(scenario.payload);
  shape.elements_max = scenario.elements;
  config.session = SessionId(static_cast<std::uint32_t>(1 + index));
  config.epoch = Epoch(static_cast<std::uint16_t>(1 + which_life * epochs_per_life));
  config.ranks = shape.ranks;
  config.lanes = shape.lanes;
  config.window_fragments = static_cast<std::uint32_t>(scenario.window);
  config.payload_bytes_max = shape.payload_bytes_max;
  secret = random_secret(rng);
  // Sessions with either kind of tag run side by side.
  tags = index % 2 == 0 ? wire::Tags::keyed : wire::Tags::checksum;
  config.keys = keys(config.epoch);
  config.first_seq = Seq(0u - static_cast<std::uint32_t>(scenario.wrap));

  Rng of_tree = numbers(scenario.seed, Purpose::tree, index << 32 | which_life);
  tree =
      std::make_unique<Tree>(Tree::random(of_tree, scenario.levels, scenario.leaves, shape.ranks));
  // Partials of halves are twice as long.
  if (scenario.levels > 1) config.payload_bytes_max *= 2;
  for (std::uint64_t op = 0; op < scenario.ops; ++op) {
    jobs.push_back(make_job(rng, random_spec(rng, shape), op, *tree));
  }
  std::vector<const Job*> all;
  for (const Job& job : jobs) all.push_back(&job);
  std::vector<std::vector<const Job*>> calls(shape.ranks, all);
  if (index == 0 && scenario.mismatch != 0 && shape.ranks > 1) {
    CAIS_CHECK(scenario.ops > 0);
    const std::uint64_t op = rng.below(scenario.ops);
    jobs.push_back(make_job(rng, another_spec(rng, shape, jobs[op]), op, *tree));
    calls[rng.below(shape.ranks)][op] = &jobs.back();
  }
  script = std::make_unique<Script>(config.lanes, config.window_fragments, config.first_seq,
                                    std::move(calls));
  oracle = std::make_unique<Oracle>(*script, *tree);
  members.resize(shape.ranks);
  for (Member& member : members) member.described.resize(scenario.ops);
}

const wire::Keys& Group::keys(Epoch epoch) {
  wire::Keys& known = keys_by_epoch[epoch];
  if (!known) known = wire::Keys::of_session(tags, secret, config.ranks, epoch);
  return known;
}

Round Group::round_of(const wire::Header& header) const {
  const auto begun = from.find(header.epoch);
  const Seq first = begun == from.end() || header.lane.value >= begun->second.size()
                        ? config.first_seq
                        : begun->second[header.lane.value];
  return LanePosition(first).round_of(header.seq);
}

bool Group::lives_in(Epoch epoch) const {
  return epoch >= config.epoch && epoch.value < config.epoch.value + epochs_per_life;
}

std::uint64_t Group::lanes_served(std::size_t of_switch) const {
  const auto found = services.find(of_switch);
  return found == services.end() ? 0 : found->second.lanes;
}

switching::SessionConfig Group::config_at(std::size_t of_switch, std::size_t node) const {
  switching::SessionConfig at = config;
  at.lanes_served = lanes_served(of_switch);
  at.place = tree->place(node);
  return at;
}

bool Group::someone_thinks() const {
  for (std::uint16_t r = 0; r < config.ranks; ++r) {
    const std::size_t calls = script->calls(Rank(r)).size();
    if (!members[r].ended && members[r].submitted == oracle->done(Rank(r)) &&
        members[r].submitted < calls) {
      return true;
    }
  }
  return false;
}

agent::Config Group::agent_config(Rank rank) const {
  return {.session = config.session,
          .epoch = config.epoch,
          .rank = rank,
          .ranks = config.ranks,
          .lanes = config.lanes,
          .window_fragments = config.window_fragments,
          .keys = wire::Keys::of_rank(tags, wire::secrets_of(secret, rank), rank, config.epoch),
          .first_seq = config.first_seq,
          .retains = retains};
}

}  // namespace cais::sim
