#include "tests/runtime/ranks.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace cais::runtime::testing {

Result<void> MapRendezvous::set(std::string_view key, std::string_view value) {
  const std::lock_guard lock(mutex_);
  values_[std::string(key)] = std::string(value);
  changed_.notify_all();
  return {};
}

Result<std::string> MapRendezvous::get(std::string_view key, Duration timeout) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, timeout, [&] { return values_.contains(key); })) {
    return Error{ErrorCode::timed_out, "nobody set " + std::string(key)};
  }
  return values_.find(key)->second;
}

void run_ranks(std::uint16_t ranks, const RanksConfig& config,
               const std::function<void(Communicator&)>& body) {
  MapRendezvous rendezvous;
  std::vector<std::shared_ptr<Communicator>> communicators(ranks);
  std::vector<std::thread> threads;
  for (std::uint16_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const GroupConfig group{config.name, rank, ranks, config.timeout};
      auto made = Communicator::create(config.settings, group, rendezvous);
      ASSERT_TRUE(made.ok()) << "rank " << rank << ": " << made.error().message;
      communicators[rank] = *made;
      body(*communicators[rank]);
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace cais::runtime::testing
