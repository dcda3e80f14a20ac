// runtime/shm/write_policy.hpp — whether a rank writes what others read next through its cache, or
// past it with non-temporal stores.
//
// A store through the cache first takes the line away from the cores that have read it. Between
// cores of one last-level cache that is cheap, and the readers then find the data in that cache.
// Between cores of two (chiplets, sockets) it costs ten times as much as a store past the cache,
// far more than the readers' way to memory. Which it is changes while a program runs: threads move
// between cores, and the cores of a virtual machine between those of its host. So both ways are
// timed, the worse one now and then.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/time.hpp"

namespace cais::runtime::shm {

class WritePolicy {
 public:
  enum class Way : std::uint8_t { through_cache, past_cache };

  /// Writes of less are soon done in either way, and are not worth the clock.
  static constexpr std::size_t timed_bytes_min = 4 * 1024;

  /// The way that the next write, of `bytes` >= timed_bytes_min, shall take; then call `took`.
  Way choose(std::size_t bytes);
  void took(std::size_t bytes, Way way, Duration time);

  /// The better way, as seen in the last write that was timed.
  Way better() const { return better_; }

 private:
  /// What a line costs in one way: the least of the last few, as a sample may hold a preemption.
  class Cost {
   public:
    explicit Cost(float unseen) { samples_.fill(unseen); }
    void add(float ns) { samples_[next_++ % samples_.size()] = ns; }
    float ns_per_line() const;

   private:
    std::array<float, 3> samples_;
    std::uint32_t next_ = 0;
  };

  /// Writes of about one size: the costs of a line differ with it.
  struct SizeClass {
    // By Way. What was not seen yet speaks for the cache.
    std::array<Cost, 2> costs{Cost(0), Cost(std::numeric_limits<float>::infinity())};
    Way better = Way::through_cache;
    std::uint32_t writes_to_probe = 2;  // then the other way is tried
    std::uint32_t probe_period = 0;
  };

  static std::size_t class_of(std::size_t bytes);

  std::array<SizeClass, 4> classes_;
  Way better_ = Way::through_cache;
};

}  // namespace cais::runtime::shm
