// Ranks as threads of one process that meet over UDP on the loopback interface.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "io/clock.hpp"
#include "nir/targets/host/lower.hpp"
#include "runtime/udp/udp_transport.hpp"
#include "tests/runtime/udp/lossy_socket.hpp"

namespace cais::runtime {

class MemoryRendezvous final : public Rendezvous {
 public:
  Result<void> set(std::string_view key, std::string_view value) override {
    const std::scoped_lock lock(mutex_);
    values_[std::string(key)] = value;
    changed_.notify_all();
    return {};
  }
  Result<std::string> get(std::string_view key, Duration timeout) override {
    std::unique_lock lock(mutex_);
    const std::string name(key);
    if (!changed_.wait_for(lock, timeout, [&] { return values_.contains(name); })) {
      return Error{ErrorCode::timed_out, "no key " + name};
    }
    return values_[name];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

/// One rank's end of the transport, driven the way a communicator does it.
class TestRank {
 public:
  TestRank(std::unique_ptr<Transport> transport, std::uint16_t rank, std::uint16_t ranks)
      : transport_(std::move(transport)), rank_(rank), ranks_(ranks) {}

  std::unique_ptr<Operation> start(const Collective& collective) {
    auto operation = std::make_unique<Operation>();
    wire::DescriptorSpec spec;
    spec.kind = collective.kind;
    spec.reduce_op = collective.reduce_op;
    spec.dtype = collective.dtype;
    spec.ranks = ranks_;
    spec.root = collective.root;
    spec.unit_elements = collective.count;
    spec.fragment_bytes = transport_->fragment_bytes();
    spec.lanes = transport_->lanes();
    Result<wire::CommDescriptor> descriptor = wire::make_descriptor(spec);
    EXPECT_TRUE(descriptor.ok()) << (descriptor ? "" : descriptor.error().message);
    operation->collective = collective;
    operation->descriptor = *descriptor;
    operation->descriptor_hash = wire::hash(*descriptor);
    Result<nir::Plan> plan = nir::lower(*descriptor);
    EXPECT_TRUE(plan.ok()) << (plan ? "" : plan.error().message);
    operation->plan = *plan;
    operation->op_seq = count_++;
    transport_->start(*operation);
    return operation;
  }
  Result<void> wait(Operation& operation, Duration limit = std::chrono::seconds(60)) {
    const Instant deadline = io::now() + limit;
    while (!operation.done()) {
      if (io::now() > deadline) return Error{ErrorCode::timed_out, "the test's own limit"};
      if (!transport_->progress()) transport_->wait(std::chrono::milliseconds(100));
    }
    return operation.outcome();
  }
  Result<void> run(const Collective& collective) {
    const auto operation = start(collective);
    return wait(*operation);
  }

  Transport& transport() { return *transport_; }
  void leave() { transport_.reset(); }
  /// As by kill -9: only where each rank is a process of its own.
  [[noreturn]] void vanish() {
    (void)::kill(::getpid(), SIGKILL);
    std::abort();
  }
  std::uint16_t rank() const { return rank_; }
  std::uint16_t ranks() const { return ranks_; }

 private:
  std::unique_ptr<Transport> transport_;
  std::uint16_t rank_, ranks_;
  std::uint64_t count_ = 0;
};

struct GroupOptions {
  std::uint16_t ranks = 2;
  Faults faults{};
  std::uint64_t seed = 1;
  std::uint32_t mtu = 1500;
  std::string switch_ip{};
  bool gso = true;
  wire::Tags tags = wire::Tags::keyed;
};

inline Result<std::unique_ptr<Transport>> make_rank(const GroupOptions& options, std::uint16_t rank,
                                                    Rendezvous& rendezvous) {
  Settings settings;
  settings.socket_ifname = "lo";
  settings.mtu_bytes = options.mtu;
  settings.switch_ip = options.switch_ip;
  settings.udp_gso = options.gso;
  settings.packet_tags = options.tags;
  GroupConfig group;
  group.name = "test";
  group.rank = rank;
  group.ranks = options.ranks;
  group.timeout = std::chrono::seconds(20);
  const bool clean =
      options.faults.loss + options.faults.duplication + options.faults.reordering == 0;
  if (const char* level = std::getenv("CAIS_DEBUG")) settings.debug = level;
  return make_udp_transport(
      settings, group, rendezvous,
      clean ? SocketFactory(open_udp_socket) : lossy(options.faults, options.seed + rank));
}

inline void run_rank(const GroupOptions& options, std::uint16_t rank, Rendezvous& rendezvous,
                     const std::function<void(TestRank&)>& body) {
  Result<std::unique_ptr<Transport>> transport = make_rank(options, rank, rendezvous);
  ASSERT_TRUE(transport.ok()) << transport.error().message;
  TestRank member(std::move(*transport), rank, options.ranks);
  body(member);
}

/// Runs `body` once per rank, each in a thread of its own; returns when all have ended.
inline void with_ranks(const GroupOptions& options, const std::function<void(TestRank&)>& body) {
  MemoryRendezvous rendezvous;
  std::vector<std::thread> threads;
  for (std::uint16_t rank = 0; rank < options.ranks; ++rank) {
    threads.emplace_back([&, rank] { run_rank(options, rank, rendezvous, body); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace cais::runtime
