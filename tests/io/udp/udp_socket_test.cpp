// Trains of packets through the kernel: their boundaries, what is cut, what is refused, and full
// buffers.
#include "io/udp/udp_socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <vector>

#include "io/clock.hpp"
#include "io/poller.hpp"

namespace cais::io {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t arrivals_max = 16;

std::unique_ptr<UdpSocket> open(const std::string& address, const UdpOptions& options = {}) {
  auto socket = UdpSocket::open(*Address::parse(address), options);
  EXPECT_TRUE(socket.ok()) << (socket ? "" : socket.error().message);
  return std::move(*socket);
}

/// Packet i is `bytes` long and filled with i.
std::vector<std::string> packets(std::size_t count, std::size_t bytes, std::size_t last_bytes) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.emplace_back(i + 1 == count ? last_bytes : bytes, static_cast<char>(i));
  }
  return all;
}

/// Each packet in two pieces, as header and payload.
std::vector<iovec> pieces_of(const std::vector<std::string>& all) {
  std::vector<iovec> pieces;
  for (const std::string& packet : all) {
    const std::size_t head = packet.size() / 3;
    char* const data = const_cast<char*>(packet.data());
    if (head > 0) pieces.push_back({data, head});
    pieces.push_back({data + head, packet.size() - head});
  }
  return pieces;
}

Train train_of(const Address& to, const std::vector<std::string>& all,
               const std::vector<iovec>& pieces) {
  return {to, pieces, static_cast<std::uint32_t>(all.front().size()),
          static_cast<std::uint32_t>(all.size())};
}

/// Takes what comes until `count` packets have, or a second has passed.
std::vector<std::string> take(UdpSocket& socket, std::size_t count) {
  BufferPool pool(arrivals_max, receive_buffer_bytes);
  std::vector<std::string> taken;
  const Instant limit = now() + seconds(1);
  while (taken.size() < count && now() < limit) {
    std::array<Arrival, arrivals_max> arrivals;
    const std::size_t filled = socket.receive(pool, arrivals);
    for (const Arrival& arrival : std::span(arrivals).first(filled)) {
      std::span<const std::byte> rest = arrival.train.bytes;
      do {
        const auto packet = rest.first(std::min<std::size_t>(arrival.packet_bytes, rest.size()));
        rest = rest.subspan(packet.size());
        taken.emplace_back(reinterpret_cast<const char*>(packet.data()), packet.size());
      } while (!rest.empty());
    }
    pollfd waiting{socket.fd(), POLLIN, 0};
    if (filled == 0) wait_any({&waiting, 1}, milliseconds(50));
  }
  return taken;
}

struct Offload {
  bool gso, gro;
};

class Trains : public testing::TestWithParam<Offload> {
 protected:
  UdpOptions options() const { return {.gso = GetParam().gso, .gro = GetParam().gro}; }
};

// A train of every shape comes out as the packets that went in, whoever cuts and joins them.
TEST_P(Trains, ComeOutAsThePacketsThatWentIn) {
  const auto sender = open("127.0.0.1", options()), receiver = open("127.0.0.1", options());
  struct Shape {
    std::size_t count, bytes, last_bytes;
  };
  for (const Shape& shape :
       {Shape{1, 1, 1}, Shape{2, 1400, 1400}, Shape{2, 1400, 1}, Shape{3, 40, 39},
        Shape{train_packets_max, 100, 100}, Shape{train_packets_max, 1000, 7},
        Shape{train_bytes_max / 1400, 1400, 1400}, Shape{1, 60'000, 60'000},
        Shape{2, train_bytes_max / 2, train_bytes_max / 2}}) {
    SCOPED_TRACE(std::to_string(shape.count) + " x " + std::to_string(shape.bytes) + ", last " +
                 std::to_string(shape.last_bytes));
    const auto sent = packets(shape.count, shape.bytes, shape.last_bytes);
    const auto pieces = pieces_of(sent);
    const Train train = train_of(receiver->address(), sent, pieces);
    ASSERT_EQ(sender->send({&train, 1}), 1u);
    EXPECT_EQ(take(*receiver, sent.size()), sent);
  }
  EXPECT_EQ(sender->counters().refused, 0u);
  EXPECT_EQ(receiver->counters().truncated, 0u);
  EXPECT_EQ(sender->counters().packets_sent, receiver->counters().packets_received);
}

// More trains than one system call takes.
TEST_P(Trains, ManyAtOnceKeepTheirOrder) {
  const auto sender = open("127.0.0.1", options()), receiver = open("127.0.0.1", options());
  const auto sent = packets(200, 64, 64);
  const auto pieces = pieces_of(sent);
  std::vector<Train> trains;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    trains.push_back({receiver->address(), std::span(pieces).subspan(2 * i, 2), 64, 1});
  }
  ASSERT_EQ(sender->send(trains), trains.size());
  EXPECT_EQ(take(*receiver, sent.size()), sent);
}

INSTANTIATE_TEST_SUITE_P(Offloads, Trains,
                         testing::Values(Offload{true, true}, Offload{true, false},
                                         Offload{false, true}, Offload{false, false}),
                         [](const auto& shape) {
                           return std::string(shape.param.gso ? "Gso" : "NoGso") +
                                  (shape.param.gro ? "Gro" : "NoGro");
                         });

TEST(UdpSocket, AnEmptyDatagramIsAPacket) {
  const auto sender = open("127.0.0.1"), receiver = open("127.0.0.1");
  const Train train{receiver->address(), {}, 0, 1};
  ASSERT_EQ(sender->send({&train, 1}), 1u);
  EXPECT_EQ(take(*receiver, 1), std::vector<std::string>{""});
  EXPECT_EQ(receiver->counters().packets_received, 1u);
}

// The largest that IPv4 carries fits a buffer; nothing on this path can be cut.
TEST(UdpSocket, TakesTheLargestDatagramWhole) {
  const auto sender = open("127.0.0.1"), receiver = open("127.0.0.1");
  constexpr std::size_t largest = 65'507;
  const auto sent = packets(1, largest, largest);
  const auto pieces = pieces_of(sent);
  const Train train = train_of(receiver->address(), sent, pieces);
  ASSERT_EQ(sender->send({&train, 1}), 1u);
  EXPECT_EQ(take(*receiver, 1), sent);
}

TEST(UdpSocket, AnOversizeDatagramIsRefusedAndWhatFollowsGoesOut) {
  for (const bool gso : {true, false}) {
    const auto sender = open("127.0.0.1", {.gso = gso}), receiver = open("127.0.0.1");
    const auto oversize = packets(1, 65'508, 65'508), good = packets(1, 10, 10);
    const auto oversize_pieces = pieces_of(oversize), good_pieces = pieces_of(good);
    const Train trains[] = {train_of(receiver->address(), oversize, oversize_pieces),
                            train_of(receiver->address(), good, good_pieces)};
    ASSERT_EQ(sender->send(trains), 2u);
    EXPECT_EQ(sender->counters().refused, 1u);
    EXPECT_EQ(take(*receiver, 1), good);
  }
}

TEST(UdpSocket, AnAddressOfAnotherFamilyIsRefusedAndWhatFollowsGoesOut) {
  const auto sender = open("127.0.0.1"), receiver = open("127.0.0.1");
  const auto sent = packets(1, 10, 10);
  const auto pieces = pieces_of(sent);
  const Train trains[] = {train_of(*Address::parse("[::1]:9"), sent, pieces),
                          train_of(receiver->address(), sent, pieces)};
  ASSERT_EQ(sender->send(trains), 2u);
  EXPECT_EQ(sender->counters().refused, 1u);
  EXPECT_EQ(take(*receiver, 1), sent);
}

// The kernel reports a closed port at the next call on the socket: that must not cost a packet.
TEST(UdpSocket, AClosedPeerDisturbsNobodyElse) {
  const auto sender = open("127.0.0.1"), receiver = open("127.0.0.1");
  const Address closed = open("127.0.0.1")->address();
  const auto sent = packets(1, 10, 10);
  const auto pieces = pieces_of(sent);
  const Train to_closed = train_of(closed, sent, pieces);
  const Train to_open = train_of(receiver->address(), sent, pieces);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(sender->send({&to_closed, 1}), 1u);
    ASSERT_EQ(sender->send({&to_open, 1}), 1u);
  }
  EXPECT_EQ(take(*receiver, 20).size(), 20u);
  EXPECT_TRUE(take(*sender, 0).empty());
}

TEST(UdpSocket, WithoutBuffersNothingIsTaken) {
  const auto sender = open("127.0.0.1"), receiver = open("127.0.0.1");
  const auto sent = packets(1, 10, 10);
  const auto pieces = pieces_of(sent);
  const Train train = train_of(receiver->address(), sent, pieces);
  ASSERT_EQ(sender->send({&train, 1}), 1u);
  BufferPool pool(1, receive_buffer_bytes);
  BufferRef held = pool.acquire();
  std::array<Arrival, 4> arrivals;
  EXPECT_EQ(receiver->receive(pool, arrivals), 0u);
  held = {};
  pollfd waiting{receiver->fd(), POLLIN, 0};
  wait_any({&waiting, 1}, seconds(1));
  EXPECT_EQ(receiver->receive(pool, arrivals), 1u);
}

TEST(UdpSocket, AFullReceiveBufferLosesPacketsAndNothingElse) {
  const auto sender = open("127.0.0.1"),
             receiver = open("127.0.0.1", {.gro = false, .buffer_bytes = 4096});
  const auto sent = packets(1000, 1000, 1000);
  const auto pieces = pieces_of(sent);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const Train train{receiver->address(), std::span(pieces).subspan(2 * i, 2), 1000, 1};
    ASSERT_EQ(sender->send({&train, 1}), 1u);
  }
  const auto taken = take(*receiver, sent.size());
  ASSERT_GT(taken.size(), 0u);
  ASSERT_LT(taken.size(), sent.size());
  for (std::size_t i = 0; i < taken.size(); ++i) EXPECT_EQ(taken[i], sent[i]) << i;
}

TEST(UdpSocket, AnAddressThatIsNotOursIsNamed) {
  const auto socket = UdpSocket::open(*Address::parse("203.0.113.1"), {});
  ASSERT_FALSE(socket.ok());
  EXPECT_NE(socket.error().message.find("203.0.113.1"), std::string::npos);
}

}  // namespace
}  // namespace cais::io
