// Groups whose lanes meet at a cais-switch: registry, workers and gRPC server are the daemon's own,
// the ranks are threads that reach it through libcais_rpc.so.
#include <gmock/gmock.h>
#include <grpc/grpc.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>

#include "rpc/server.hpp"
#include "runtime/udp/switch_registry.hpp"
#include "tests/runtime/udp/checks.hpp"
#include "tests/runtime/udp/group.hpp"

namespace cais::runtime {
namespace {

using testing::HasSubstr;

class Box {
 public:
  explicit Box(std::uint32_t workers) {
    SwitchOptions options;
    options.listen = *io::Address::parse("127.0.0.1");
    options.workers = workers;
    auto registry = SwitchRegistry::start(options);
    EXPECT_TRUE(registry.ok());
    registry_ = std::move(*registry);
    auto server = rpc::Server::start("127.0.0.1:0", *registry_);
    EXPECT_TRUE(server.ok());
    server_ = std::move(*server);
    address_ = "127.0.0.1:" + std::to_string(server_->port());
  }
  ~Box() { stop(); }
  void stop() {
    if (server_ == nullptr) return;
    registry_->end_all();
    server_->stop();
    server_.reset();
  }
  const std::string& address() const { return address_; }
  SwitchRegistry& registry() { return *registry_; }

 private:
  std::unique_ptr<SwitchRegistry> registry_;
  std::unique_ptr<rpc::Server> server_;
  std::string address_;
};

/// P20: within a second all has come back.
void expect_all_free(Box& box) {
  rpc::Status status;
  for (int i = 0; i < 100; ++i) {
    status = box.registry().status();
    if (status.sessions.empty() && status.slots_in_use == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ADD_FAILURE() << status.sessions.size() << " sessions and " << status.slots_in_use
                << " slots are left";
}

TEST(Box, ComputesAllKinds) {
  Box box(1);
  with_ranks({.ranks = 4, .switch_ip = box.address()}, [](TestRank& rank) {
    for (const std::size_t count : {1, 37, 1000, 60'000}) check_all_kinds(rank, count);
  });
  expect_all_free(box);
}

TEST(Box, ComputesWithChecksums) {
  Box box(2);
  with_ranks({.ranks = 3, .switch_ip = box.address(), .tags = wire::Tags::checksum},
             [](TestRank& rank) { check_all_kinds(rank, 10'000); });
  expect_all_free(box);
}

TEST(Box, SpreadsLanesOverWorkers) {
  Box box(3);
  with_ranks({.ranks = 3, .switch_ip = box.address()}, [](TestRank& rank) {
    EXPECT_EQ(rank.transport().lanes(), 3);
    check_all_reduce(rank, 300'000);
    check_all_gather(rank, 100'000);
  });
  expect_all_free(box);
}

/// Its end goes on in a thread of its own, and a process that ends meanwhile is aborted.
TEST(Box, GrpcStaysAfterItsLastObject) {
  {
    Box box(1);
    with_ranks({.ranks = 2, .switch_ip = box.address()},
               [](TestRank& rank) { check_all_reduce(rank, 10); });
  }
  EXPECT_TRUE(grpc_is_initialized());
}

TEST(Box, ComputesUnderLoss) {
  Box box(2);
  const Faults faults{.loss = 0.02, .duplication = 0.02, .reordering = 0.02};
  with_ranks({.ranks = 3, .faults = faults, .seed = 21, .switch_ip = box.address()},
             [](TestRank& rank) { check_all_kinds(rank, 20'000); });
  expect_all_free(box);
}

TEST(Box, ExplainsMismatchToAll) {
  Box box(1);
  std::barrier all_done(3);  // the refusal ends all that is under way
  with_ranks({.ranks = 3, .switch_ip = box.address()}, [&](TestRank& rank) {
    check_all_reduce(rank, 10);
    all_done.arrive_and_wait();
    expect_mismatch(rank);
  });
  expect_all_free(box);
}

TEST(Box, NamesTheRankThatIsLate) {
  Box box(2);
  with_ranks({.ranks = 3, .switch_ip = box.address()}, [](TestRank& rank) {
    check_all_reduce(rank, 10);
    expect_late_rank(rank);
  });
}

TEST(Box, TellsRanksThatItStops) {
  Box box(1);
  std::atomic<int> ready = 0;
  std::atomic<bool> stopped = false;
  std::thread stopper([&] {
    while (ready < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    box.stop();
    stopped = true;
  });
  with_ranks({.ranks = 2, .switch_ip = box.address()}, [&](TestRank& rank) {
    check_all_reduce(rank, 10);
    ++ready;
    if (rank.rank() == 1) {
      while (!stopped) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    std::vector<float> data(10);
    const Result<void> outcome =
        rank.run(collective(OpKind::all_reduce, 10, data.data(), data.data()));
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::unavailable);
    EXPECT_THAT(outcome.error().message, HasSubstr("shutting down"));
  });
  stopper.join();
}

TEST(Box, WrongAddressIsAnError) {
  MemoryRendezvous rendezvous;
  Settings settings;
  settings.switch_ip = "127.0.0.1:1";
  GroupConfig group;
  group.name = "nobody";
  group.timeout = std::chrono::seconds(10);
  Result<std::unique_ptr<Transport>> transport = make_udp_transport(settings, group, rendezvous);
  ASSERT_FALSE(transport.ok());
  EXPECT_EQ(transport.error().code, ErrorCode::unavailable);
  EXPECT_THAT(transport.error().message, HasSubstr("CAIS_SWITCH_IP"));
  EXPECT_THAT(transport.error().message, HasSubstr("127.0.0.1:1"));
}

class KeptEvents final : public rpc::EventSink {
 public:
  void send(const rpc::SessionEvent& event) override { events.push_back(event); }
  void close() override {}
  std::vector<rpc::SessionEvent> events;
};

rpc::JoinRequest join_of(std::uint16_t rank) {
  return {.group = "g",
          .rank = Rank(rank),
          .ranks = 2,
          .udp_address = "127.0.0.1:9",
          .fragment_bytes = 1024,
          .window_fragments = 64,
          .name = "rank " + std::to_string(rank)};
}

TEST(Box, RanksWithOtherTagsAreRefused) {
  Box box(1);
  const auto events = std::make_shared<KeptEvents>();
  ASSERT_TRUE(box.registry().join(join_of(0), events).ok());
  rpc::JoinRequest other = join_of(1);
  other.tags = wire::Tags::checksum;
  const Result<void> joined = box.registry().join(other, std::make_shared<KeptEvents>());
  ASSERT_FALSE(joined.ok());
  EXPECT_THAT(joined.error().message, HasSubstr("has keyed packet tags, not checksum"));
  EXPECT_THAT(joined.error().message, HasSubstr("CAIS_PACKET_TAGS"));
  box.stop();
}

TEST(Box, EachRankHasSecretsOfItsOwnAndSpeaksForItselfAlone) {
  Box box(1);
  std::vector<std::shared_ptr<KeptEvents>> events;
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    events.push_back(std::make_shared<KeptEvents>());
    ASSERT_TRUE(box.registry().join(join_of(rank), events.back()).ok());
  }
  std::vector<rpc::Joined> joined;
  for (const auto& each : events) joined.push_back(std::get<rpc::Joined>(each->events.at(0)));
  EXPECT_TRUE(wire::equal(joined[0].secrets.group, joined[1].secrets.group));
  EXPECT_FALSE(wire::equal(joined[0].secrets.own, joined[1].secrets.own));
  EXPECT_FALSE(wire::equal(joined[0].secrets.own, joined[0].secrets.group));

  const SessionId session = joined[0].session;
  EXPECT_FALSE(box.registry().leave({session, Rank(1), joined[0].secrets.own}, 0).ok());
  EXPECT_FALSE(box.registry().abort({session, Rank(0), {}}, Error{}).ok());
  EXPECT_TRUE(box.registry().leave({session, Rank(0), joined[0].secrets.own}, 0).ok());
  EXPECT_TRUE(box.registry().leave({session, Rank(1), joined[1].secrets.own}, 0).ok());
}

}  // namespace
}  // namespace cais::runtime
