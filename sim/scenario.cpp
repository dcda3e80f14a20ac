#include "sim/scenario.hpp"

#include <charconv>
#include <utility>

namespace cais::sim {
namespace {

constexpr std::uint64_t million = 1'000'000;

constexpr Knob all_knobs[] = {
    {"sessions", &Scenario::sessions, 1, 8},
    {"lives", &Scenario::lives, 1, 8},
    {"ops", &Scenario::ops, 1, 100},
    {"ranks", &Scenario::ranks, 1, 64},
    {"lanes", &Scenario::lanes, 1, 64},
    {"switches", &Scenario::switches, 1, switches_max - 1},
    {"levels", &Scenario::levels, 1, 3},
    {"leaves", &Scenario::leaves, 1, leaves_max},
    {"rank_crashes", &Scenario::rank_crashes, 0, 100},
    {"controller_crashes", &Scenario::controller_crashes, 0, 100},
    {"switch_cut_offs", &Scenario::switch_cut_offs, 0, 1000},
    {"switch_crashes", &Scenario::switch_crashes, 0, 1000},
    {"control_doubled", &Scenario::control_doubled, 0, million},
    {"control_loss", &Scenario::control_loss, 0, million},
    {"fallback", &Scenario::fallback, 0, 1},
    {"controlled", &Scenario::controlled, 0, 1},
    {"rank_pauses", &Scenario::rank_pauses, 0, 1000},
    {"switch_pauses", &Scenario::switch_pauses, 0, 1000},
    {"partitions", &Scenario::partitions, 0, 1000},
    {"clogs", &Scenario::clogs, 0, 1000},
    {"impostor", &Scenario::impostor, 0, million},
    {"truncation", &Scenario::truncation, 0, million},
    {"damage", &Scenario::damage, 0, million},
    {"straggler", &Scenario::straggler, 0, million},
    {"doubled_late", &Scenario::doubled_late, 0, million},
    {"doubled", &Scenario::doubled, 0, million},
    {"burst", &Scenario::burst, 0, million},
    {"loss", &Scenario::loss, 0, million},
    {"mismatch", &Scenario::mismatch, 0, 1},
    {"wrap", &Scenario::wrap, 0, 1'000'000},
    {"jitter_us", &Scenario::jitter_us, 0, 1'000'000},
    {"delay_us", &Scenario::delay_us, 1, 1'000'000},
    {"think_us", &Scenario::think_us, 1, 10'000'000},
    {"depth", &Scenario::depth, 1, 100},
    {"elements", &Scenario::elements, 0, 1'000'000},
    {"payload", &Scenario::payload, 16, 65'000},
    {"window", &Scenario::window, 1, 4096},
    {"safety_ms", &Scenario::safety_ms, 0, 3'600'000},
};

/// One of the rates, more often a small one.
std::uint64_t rate(Rng& rng) {
  static constexpr std::uint64_t rates[] = {0, 0, 1'000, 10'000, 50'000, 200'000};
  return rates[rng.below(std::size(rates))];
}

}  // namespace

std::span<const Knob> knobs() { return all_knobs; }

Rng numbers(std::uint64_t seed, Purpose purpose, std::uint64_t index) {
  const std::uint64_t of_seed = Rng(seed).next();
  const std::uint64_t of_purpose = Rng(of_seed ^ static_cast<std::uint64_t>(purpose)).next();
  return Rng(Rng(of_purpose ^ index).next());
}

Scenario scenario_of(std::uint64_t seed) {
  Rng rng = numbers(seed, Purpose::scenario);
  Scenario s;
  s.seed = seed;
  s.sessions = 1 + rng.below(3);
  s.lives = 1 + rng.below(2);
  s.ranks = rng.chance(0.05) ? 64 : rng.chance(0.5) ? 1 + rng.below(4) : 1 + rng.below(9);
  s.lanes = 1 + rng.below(4);
  s.switches = rng.chance(0.6) ? 1 : 1 + rng.below(s.lanes);
  s.window = 1u << rng.below(8);
  s.payload = 16 * (1 + rng.below(rng.chance(0.2) ? 64 : 8));
  s.ops = 1 + rng.below(8);
  s.elements = rng.chance(0.2) ? 4000 : rng.chance(0.5) ? 400 : 40;
  if (s.ranks > 9) s.elements = 40;
  s.depth = 1 + rng.below(4);
  static constexpr std::uint64_t thoughts[] = {500, 500, 20'000, 2'000'000};
  s.think_us = thoughts[rng.below(std::size(thoughts))];
  s.wrap = rng.chance(0.5) ? 1 + rng.below(200) : 0;
  s.mismatch = rng.chance(0.15) ? 1 : 0;
  static constexpr std::uint64_t delays[] = {1, 10, 100, 2'000};
  s.delay_us = delays[rng.below(std::size(delays))];
  s.jitter_us = rng.chance(0.4) ? 0 : rng.below(10 * s.delay_us + 20);
  static constexpr std::uint64_t phases[] = {0, 5, 50, 500, 5'000};
  s.safety_ms = phases[rng.below(std::size(phases))];
  s.loss = rate(rng);
  s.burst = rng.chance(0.5) ? 0 : rate(rng) / 20;
  s.doubled = rate(rng);
  s.doubled_late = rate(rng) / 4;
  s.straggler = rate(rng) / 4;
  s.damage = rate(rng) / 2;
  s.truncation = rate(rng) / 4;
  s.clogs = rng.below(6);
  s.partitions = rng.below(6);
  s.rank_pauses = rng.below(4);
  s.switch_pauses = rng.below(3);
  s.impostor = rng.chance(0.5) ? 0 : rate(rng);
  if (rng.chance(0.5)) {
    s.levels = 1 + rng.below(3);
    s.leaves = s.levels == 1 ? 1 : 1 + rng.below(4);
  }
  if (rng.chance(0.5)) return s;
  s.controlled = 1;
  s.control_loss = rate(rng);
  s.control_doubled = rate(rng);
  s.switch_crashes = rng.below(6);
  s.controller_crashes = rng.chance(0.3) ? 1 + rng.below(3) : 0;
  s.rank_crashes = rng.chance(0.15) ? 1 : 0;
  s.switch_cut_offs = rng.below(4);
  s.fallback = rng.below(2);
  return s;
}

Result<void> set(Scenario& scenario, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string name = assignment.substr(0, equals);
  for (const Knob& knob : all_knobs) {
    if (name != knob.name) continue;
    std::uint64_t value = 0;
    const char* const end = assignment.data() + assignment.size();
    const char* const begin = equals == std::string::npos ? end : assignment.data() + equals + 1;
    const auto [stop, error] = std::from_chars(begin, end, value);
    const bool power = name != "window" || (value & (value - 1)) == 0;
    const bool step = name != "payload" || value % 16 == 0;
    if (error != std::errc() || stop != end || value < knob.least || value > knob.most || !power ||
        !step) {
      std::string what = "\"";
      what += assignment;
      what += "\": ";
      what += name;
      what += " is a number from ";
      what += std::to_string(knob.least);
      what += " to ";
      what += std::to_string(knob.most);
      if (name == "window") what += ", a power of two";
      if (name == "payload") what += ", a multiple of 16";
      return Error{ErrorCode::invalid_argument, std::move(what)};
    }
    scenario.*knob.value = value;
    return {};
  }
  std::string names;
  for (const Knob& knob : all_knobs) {
    if (!names.empty()) names += ", ";
    names += knob.name;
  }
  return Error{ErrorCode::invalid_argument,
               "\"" + assignment + "\" sets nothing: write NAME=NUMBER, NAME one of " + names};
}

std::string to_string(const Scenario& scenario) {
  std::string text;
  for (const Knob& knob : all_knobs) {
    if (scenario.*knob.value == knob.least) continue;
    if (!text.empty()) text += ' ';
    text += knob.name;
    text += '=';
    text += std::to_string(scenario.*knob.value);
  }
  return text;
}

}  // namespace cais::sim
