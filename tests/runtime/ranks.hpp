// Ranks for tests: each is a thread with a communicator of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/communicator.hpp"
#include "runtime/shm/tuning.hpp"

namespace cais::runtime::testing {

/// A rendezvous in the memory of this process.
class MapRendezvous final : public Rendezvous {
 public:
  Result<void> set(std::string_view key, std::string_view value) override;
  Result<std::string> get(std::string_view key, Duration timeout) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string, std::less<>> values_;
};

struct RanksConfig {
  Settings settings;
  Duration timeout = std::chrono::seconds(30);
  std::string name = "test";
  std::optional<shm::Tuning> tuning;  // over shared memory, with these thresholds
};

/// Runs `body` in one thread per rank, each with its communicator; gtest failures count. The
/// communicators are destroyed when all bodies have returned.
void run_ranks(std::uint16_t ranks, const RanksConfig& config,
               const std::function<void(Communicator&)>& body);

/// The sum of `tensor` over the ranks, in place.
Collective all_reduce_of(std::vector<float>& tensor);

}  // namespace cais::runtime::testing
