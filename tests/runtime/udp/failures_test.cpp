// How a group over UDP ends when something is wrong: the same error at all ranks, within a second.
#include <atomic>
#include <barrier>

#include "tests/runtime/udp/checks.hpp"
#include "tests/runtime/udp/processes.hpp"

namespace cais::runtime {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(UdpFailures, MismatchIsExplainedToAll) {
  std::barrier all_done(3);  // the refusal ends all that is under way
  with_ranks({.ranks = 3}, [&](TestRank& member) {
    check_all_reduce(member, 10);
    all_done.arrive_and_wait();
    expect_mismatch(member);
    // And it stays so.
    std::vector<float> data(1);
    EXPECT_EQ(member.run(collective(OpKind::all_reduce, 1, data.data(), data.data())).error().code,
              ErrorCode::mismatch);
  });
}

TEST(UdpFailures, LateRankIsNamed) {
  with_ranks({.ranks = 3}, [](TestRank& member) {
    check_all_reduce(member, 10);
    expect_late_rank(member);
  });
}

TEST(UdpFailures, KilledRankIsNamed) {
  MeetingPoint all_done;
  with_processes({.ranks = 3}, [&](TestRank& member) {
    check_all_reduce(member, 100'000);
    all_done.meet(3);
    expect_lost_rank(member);
  });
}

TEST(UdpFailures, AbortIsHeardByAll) {
  with_ranks({.ranks = 3}, [](TestRank& member) {
    std::vector<float> data(100);
    if (member.rank() == 0) {
      member.transport().abort(Error{ErrorCode::aborted, "the test wants it"});
    }
    const Result<void> outcome =
        member.run(collective(OpKind::all_reduce, 100, data.data(), data.data()));
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::aborted);
    EXPECT_THAT(outcome.error().message, HasSubstr("the test wants it"));
  });
}

TEST(UdpFailures, AbortWakesWhoeverWaits) {
  with_ranks({.ranks = 2}, [](TestRank& member) {
    if (member.rank() == 1) return std::this_thread::sleep_for(milliseconds(300));
    std::thread aborter([&] {
      std::this_thread::sleep_for(milliseconds(50));
      member.transport().abort(Error{ErrorCode::aborted, "enough"});
    });
    std::vector<float> data(100);
    const Instant begin = io::now();
    EXPECT_FALSE(member.run(collective(OpKind::all_reduce, 100, data.data(), data.data())).ok());
    EXPECT_LT(io::now() - begin, milliseconds(250));
    aborter.join();
  });
}

TEST(UdpFailures, LeavingTooEarlyIsAnErrorForTheOthers) {
  with_ranks({.ranks = 3}, [](TestRank& member) {
    check_all_reduce(member, 10);
    if (member.rank() == 2) return;
    std::vector<float> data(10);
    const Result<void> outcome =
        member.run(collective(OpKind::all_reduce, 10, data.data(), data.data()));
    ASSERT_FALSE(outcome.ok());
    EXPECT_THAT(outcome.error().message, HasSubstr("rank 2 (host"));
  });
}

TEST(UdpFailures, LeavingWaitsForWhoeverNeedsRepeats) {
  // A third of all packets is lost: whoever is done first must still answer the others.
  const Faults faults{.loss = 0.33};
  for (const std::uint64_t seed : {31, 32, 33}) {
    with_ranks({.ranks = 3, .faults = faults, .seed = seed},
               [](TestRank& member) { check_all_reduce(member, 2000); });
  }
}

/// Hears nothing once it is told so.
class DeafSocket final : public io::DatagramSocket {
 public:
  DeafSocket(std::unique_ptr<io::DatagramSocket> inner, const std::atomic<bool>& deaf)
      : inner_(std::move(inner)), deaf_(deaf) {}
  std::size_t send(std::span<const io::Train> trains) override { return inner_->send(trains); }
  std::size_t receive(BufferPool& pool, std::span<io::Arrival> out) override {
    const std::size_t count = inner_->receive(pool, out);
    if (!deaf_) return count;
    for (io::Arrival& arrival : out.first(count)) arrival.train.owner = {};
    return 0;
  }
  int fd() const override { return inner_->fd(); }
  io::Address address() const override { return inner_->address(); }

 private:
  std::unique_ptr<io::DatagramSocket> inner_;
  const std::atomic<bool>& deaf_;
};

// Found with AddressSanitizer, whose slowness and half of the packets lost made a rank wait for
// ever: its peers had left in order, and given up on it after five seconds.
TEST(UdpFailures, WhoeverIsGivenUpOnIsToldSo) {
  MemoryRendezvous rendezvous;
  std::atomic<bool> deaf = false;
  const SocketFactory open_deaf =
      [&](const io::Address& local,
          const io::UdpOptions& options) -> Result<std::unique_ptr<io::DatagramSocket>> {
    auto socket = open_udp_socket(local, options);
    if (!socket) return socket.error();
    return std::unique_ptr<io::DatagramSocket>(
        std::make_unique<DeafSocket>(std::move(*socket), deaf));
  };
  std::vector<std::thread> threads;
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Settings settings;
      settings.socket_ifname = "lo";
      GroupConfig group;
      group.name = "deaf";
      group.rank = rank;
      group.ranks = 2;
      auto transport = rank == 0 ? make_udp_transport(settings, group, rendezvous)
                                 : make_udp_transport(settings, group, rendezvous, open_deaf);
      ASSERT_TRUE(transport.ok()) << transport.error().message;
      TestRank member(std::move(*transport), rank, 2);
      check_all_reduce(member, 10);  // rank 0 sums this one, rank 1 the next
      check_all_reduce(member, 10);
      if (rank == 1) deaf = true;
      std::vector<float> data(10);
      const Result<void> outcome =
          member.run(collective(OpKind::all_reduce, 10, data.data(), data.data()));
      ASSERT_EQ(outcome.ok(), rank == 0);
      if (rank == 0) return;
      EXPECT_EQ(outcome.error().code, ErrorCode::rank_lost);
      EXPECT_THAT(outcome.error().message, HasSubstr("rank 0 (host"));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(UdpFailures, MissingRankIsNamedInTime) {
  MemoryRendezvous rendezvous;
  Settings settings;
  settings.socket_ifname = "lo";
  GroupConfig group;
  group.name = "lonely";
  group.ranks = 2;
  group.timeout = milliseconds(100);
  Result<std::unique_ptr<Transport>> transport = make_udp_transport(settings, group, rendezvous);
  ASSERT_FALSE(transport.ok());
  EXPECT_EQ(transport.error().code, ErrorCode::timed_out);
  EXPECT_THAT(transport.error().message, HasSubstr("rank 1"));
}

TEST(UdpFailures, RanksWithOtherTagsAreToldSo) {
  MemoryRendezvous rendezvous;
  std::vector<std::thread> threads;
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      GroupOptions options;
      if (rank == 1) options.tags = wire::Tags::checksum;
      const auto transport = make_rank(options, rank, rendezvous);
      ASSERT_FALSE(transport.ok());
      EXPECT_EQ(transport.error().code, ErrorCode::invalid_argument);
      EXPECT_THAT(
          transport.error().message,
          testing::AllOf(HasSubstr("CAIS_PACKET_TAGS must be the same at all ranks"),
                         HasSubstr("'checksum'"), HasSubstr("'keyed'"), HasSubstr("rank 1")));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace cais::runtime
