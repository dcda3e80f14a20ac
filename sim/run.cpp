#include "sim/run.hpp"

#include <deque>
#include <ostream>

namespace cais::sim {
namespace {

/// What kind of failure it is, as in "I1:", whatever session it befell.
std::string kind_of(std::string failure) {
  if (failure.compare(0, 8, "session ") == 0) failure.erase(0, failure.find(": ") + 2);
  return failure.substr(0, failure.find(' '));
}

bool fails_alike(const Scenario& scenario, const std::string& kind) {
  return kind_of(run(scenario).failure) == kind;
}

}  // namespace

Outcome run(const Scenario& scenario, Trace trace) {
  World world(scenario, std::move(trace));
  world.run();
  return {world.failure(), world.digest(), world.report()};
}

std::string tail_of(const Scenario& scenario, std::size_t lines) {
  std::deque<std::string> last;
  run(scenario, [&](const std::string& line) {
    last.push_back(line);
    if (last.size() > lines) last.pop_front();
  });
  std::string text;
  for (const std::string& line : last) text += line + "\n";
  return text;
}

Scenario minimise(const Scenario& scenario, std::ostream& progress) {
  Scenario smallest = scenario;
  const std::string kind = kind_of(run(scenario).failure);
  if (kind.empty()) return smallest;
  bool smaller = true;
  while (smaller) {
    smaller = false;
    for (const Knob& knob : knobs()) {
      // Towards the least, in halves: what fails at once is taken at once.
      std::uint64_t good = knob.least;  // does not fail, as far as is known
      while (smallest.*knob.value != good) {
        Scenario tried = smallest;
        tried.*knob.value = good;
        if ((knob.value != &Scenario::payload || good % 16 == 0) && fails_alike(tried, kind)) {
          progress << "fails with " << knob.name << "=" << good << " instead of "
                   << smallest.*knob.value << std::endl;
          smallest = tried;
          smaller = true;
          break;
        }
        const std::uint64_t gap = smallest.*knob.value - good;
        if (gap > 1 && gap < smallest.*knob.value / 8) break;  // not worth a run
        if (knob.value == &Scenario::window) {
          good *= 2;
        } else {
          good += (gap + 1) / 2;
        }
      }
    }
  }
  return smallest;
}

}  // namespace cais::sim
