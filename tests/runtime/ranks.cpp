#include "tests/runtime/ranks.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "runtime/group_communicator.hpp"
#include "runtime/shm/group.hpp"
#include "runtime/shm/shm_transport.hpp"

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

namespace {

Result<std::shared_ptr<Communicator>> make_communicator(const RanksConfig& config,
                                                        const GroupConfig& group_config,
                                                        Rendezvous& rendezvous) {
  if (!config.tuning) return Communicator::create(config.settings, group_config, rendezvous);
  auto group = shm::connect_group(config.settings, group_config, rendezvous);
  if (!group) return group.error();
  return std::shared_ptr<Communicator>(std::make_shared<GroupCommunicator>(
      config.settings, group_config,
      std::make_unique<shm::ShmTransport>(config.settings, std::move(*group), *config.tuning)));
}

}  // namespace

void run_ranks(std::uint16_t ranks, const RanksConfig& config,
               const std::function<void(Communicator&)>& body) {
  MapRendezvous rendezvous;
  std::vector<std::shared_ptr<Communicator>> communicators(ranks);
  std::vector<std::thread> threads;
  for (std::uint16_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const GroupConfig group{config.name, rank, ranks, config.timeout};
      auto made = make_communicator(config, group, rendezvous);
      ASSERT_TRUE(made.ok()) << "rank " << rank << ": " << made.error().message;
      communicators[rank] = *made;
      body(*communicators[rank]);
    });
  }
  for (auto& thread : threads) thread.join();
}

Collective all_reduce_of(std::vector<float>& tensor) {
  return {.kind = OpKind::all_reduce,
          .reduce_op = ReduceOp::sum,
          .dtype = DType::float32,
          .send = tensor.data(),
          .recv = tensor.data(),
          .count = tensor.size()};
}

}  // namespace cais::runtime::testing
