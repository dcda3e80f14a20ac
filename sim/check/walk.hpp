// sim/check/walk.hpp — walks every run of a model, depth first; a state that was seen is not walked
// again. Machines are copied, not replayed: a copy costs microseconds, a replay as many steps as
// the path has.
//
// A model has a State, whose complaint() is empty as long as all is as it must be, Actions, and
//   first()                       where it begins
//   actions(state, out)           what can happen next
//   possible(state, action)       whether it is one of those
//   apply(state, action)
//   fingerprint(state)            the same for states that need not be told apart
//   ends(state, sent)             the run from there on that has no more faults
//   to_string(action)
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.hpp"

namespace cais::sim {

struct Exploration {
  std::uint64_t states = 0;
  std::uint64_t steps = 0;  // taken, also to states that were seen before
  std::size_t depth = 0;
  bool complete = false;          // every state that can be reached was
  int timeouts = 0;               // of one machine, at most, until a run without faults was over
  std::string failure;            // empty: none
  std::vector<std::string> path;  // to the failure, with what it does not need left out
};

/// Of a run without faults: before it, what was sent is lost, or all of it arrives once; after that
/// nothing is lost any more.
enum class Sent { lost, arrives };
struct End {
  int timeouts;           // of one machine, at most, until all was over
  std::string complaint;  // empty: none
};

/// The states that were seen, by fingerprint: open addressing, 0 marks a free place.
class Seen {
 public:
  /// Whether it is new.
  bool insert(std::uint64_t fingerprint) {
    if (2 * (count_ + 1) > places_.size()) grow();
    std::uint64_t& place = find(fingerprint | 1);
    if (place != 0) return false;
    place = fingerprint | 1;
    ++count_;
    return true;
  }
  std::uint64_t count() const { return count_; }

 private:
  std::uint64_t& find(std::uint64_t mark) {
    std::size_t at = (mark >> 1) & (places_.size() - 1);
    while (places_[at] != 0 && places_[at] != mark) at = (at + 1) & (places_.size() - 1);
    return places_[at];
  }
  void grow() {
    std::vector<std::uint64_t> old(std::max<std::size_t>(1024, 2 * places_.size()));
    old.swap(places_);
    for (const std::uint64_t mark : old) {
      if (mark != 0) find(mark) = mark;
    }
  }
  std::vector<std::uint64_t> places_;
  std::uint64_t count_ = 0;
};

template <typename Model>
class Walk {
 public:
  /// From one state in `fair_every` on, the run that has no more faults is played to its end (I7).
  Walk(Model& model, std::uint64_t fair_every) : model_(model), fair_every_(fair_every) {}

  /// Stops after `states_max`.
  Exploration run(std::uint64_t states_max) {
    const End faultless = model_.ends(model_.first(), Sent::arrives);
    if (!faultless.complaint.empty() || faultless.timeouts != 0) {
      result_.failure = faultless.complaint.empty() ? "P10: without any fault it needs a timer"
                                                    : faultless.complaint;
      return result_;
    }
    const End all_lost = model_.ends(model_.first(), Sent::lost);
    result_.timeouts = all_lost.timeouts;
    result_.failure = all_lost.complaint;
    if (!result_.failure.empty()) return result_;
    enter(model_.first());
    while (!path_.empty() && result_.failure.empty() && seen_.count() < states_max) {
      Step& top = path_.back();
      if (top.untried.empty()) {
        path_.pop_back();
        continue;
      }
      top.taken = top.untried.back();
      top.untried.pop_back();
      State next = top.state;
      model_.apply(next, top.taken);
      ++result_.steps;
      enter(std::move(next));
    }
    result_.states = seen_.count();
    result_.complete = path_.empty() && result_.failure.empty();
    return result_;
  }

 private:
  using State = typename Model::State;
  using Action = typename Model::Action;

  /// A state on the way from the first one, and what has still to be tried there.
  struct Step {
    State state;
    std::vector<Action> untried;
    Action taken{};  // the last one tried
  };

  void enter(State state) {
    if (!state.complaint().empty()) return fail(state.complaint());
    const std::uint64_t fingerprint = model_.fingerprint(state);
    if (!seen_.insert(fingerprint)) return;
    if (fingerprint % fair_every_ == 0) {
      const End end = model_.ends(state, Sent::lost);
      if (!end.complaint.empty()) return fail(end.complaint);
      result_.timeouts = std::max(result_.timeouts, end.timeouts);
    }
    path_.push_back({std::move(state), {}});
    result_.depth = std::max(result_.depth, path_.size());
    std::vector<Action>& untried = path_.back().untried;
    model_.actions(path_.back().state, untried);
    // In an order of its own at each state, so that a bounded walk sees runs of many sorts.
    Rng rng(fingerprint);
    for (std::size_t i = untried.size(); i > 1; --i)
      std::swap(untried[i - 1], untried[rng.below(i)]);
  }

  /// What comes of these actions, as far as they are possible, and of the end without faults.
  std::string replay(const std::vector<Action>& actions) {
    State state = model_.first();
    for (const Action& action : actions) {
      if (!model_.possible(state, action)) continue;
      model_.apply(state, action);
      if (!state.complaint().empty()) return state.complaint();
    }
    return model_.ends(state, Sent::lost).complaint;
  }

  void fail(const std::string& failure) {
    std::vector<Action> actions;
    for (const Step& step : path_) actions.push_back(step.taken);
    for (std::size_t length = actions.size(); length > 0; length /= 2) {
      for (std::size_t at = 0; at + length <= actions.size();) {
        std::vector<Action> fewer = actions;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at),
                    fewer.begin() + static_cast<std::ptrdiff_t>(at + length));
        if (replay(fewer).substr(0, 3) == failure.substr(0, 3)) {
          actions = std::move(fewer);
        } else {
          at += length;
        }
      }
    }
    result_.failure = replay(actions);
    for (const Action& action : actions) result_.path.push_back(model_.to_string(action));
  }

  Model& model_;
  std::uint64_t fair_every_;
  Seen seen_;
  std::vector<Step> path_;
  Exploration result_;
};

}  // namespace cais::sim
