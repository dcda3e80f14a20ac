#include "tests/lab/impairment.hpp"

#include <algorithm>

namespace cais::lab {

Impairment::Impairment(const Rates& rates, std::uint64_t seed, Send send)
    : rates_(rates), rng_(seed), send_(std::move(send)) {}

void Impairment::admit(Instant now, Frame frame) {
  ++counters_.received;
  if (!is_ipv4(frame)) {
    pass(frame);
    return;
  }
  // Always three draws, so that the fate of a frame depends on its number alone.
  const bool lose = rng_.chance(rates_.loss);
  const bool duplicate = rng_.chance(rates_.duplicate);
  const bool reorder = rng_.chance(rates_.reorder);
  if (lose) {
    ++counters_.lost;
    return;
  }
  if (duplicate) {
    ++counters_.duplicated;
    pass(frame);
  }
  if (reorder && held_.size() < held_max) {
    held_.push_back({{frame.begin(), frame.end()},
                     passed_ + 1 + rng_.below(overtakers_max),
                     passed_,
                     now + hold_max});
    return;
  }
  counters_.not_held += reorder ? 1 : 0;
  pass(frame);
  release(now);
}

Instant Impairment::deadline() const {
  Instant first = never;
  for (const Held& held : held_) first = std::min(first, held.leaves_at);
  return first;
}

void Impairment::release(Instant now) {
  // What leaves here is no overtaker of those still held: passed_ is read once.
  const std::uint64_t passed = passed_;
  const auto leaves = [&](const Held& held) {
    return passed >= held.leaves_after || now >= held.leaves_at;
  };
  for (const Held& held : held_) {
    if (leaves(held)) let_go(held);
  }
  std::erase_if(held_, leaves);
}

void Impairment::let_go(const Held& held) {
  counters_.reordered += passed_ > held.passed_when_held ? 1 : 0;
  ++counters_.sent;
  send_(held.frame);
}

void Impairment::pass(Frame frame) {
  ++passed_;
  ++counters_.sent;
  send_(frame);
}

std::string Counters::to_string() const {
  return "received " + std::to_string(received) + " sent " + std::to_string(sent) + " lost " +
         std::to_string(lost) + " duplicated " + std::to_string(duplicated) + " reordered " +
         std::to_string(reordered) + " not_held " + std::to_string(not_held);
}

bool is_ipv4(Impairment::Frame frame) {
  constexpr std::size_t ethertype_at = 12;
  return frame.size() >= ethertype_at + 2 && frame[ethertype_at] == std::byte{0x08} &&
         frame[ethertype_at + 1] == std::byte{0x00};
}

}  // namespace cais::lab
