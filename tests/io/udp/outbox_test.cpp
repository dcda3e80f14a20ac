// Packets sorted into trains, and what becomes of them while the socket is full.
#include "io/udp/outbox.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.hpp"

namespace cais::io {
namespace {

/// A socket whose send buffer has room for `room` trains, and keeps what it took.
class Recorder final : public DatagramSocket {
 public:
  std::size_t send(std::span<const Train> trains) override {
    ++calls;
    std::size_t taken = 0;
    for (; taken < trains.size() && room > 0; ++taken, --room) {
      const Train& train = trains[taken];
      std::string bytes;
      for (const iovec& piece : train.pieces) {
        bytes.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
      }
      EXPECT_LE(bytes.size(), train_bytes_max);
      EXPECT_LE(train.packets, train_packets_max);
      EXPECT_EQ(train.packets, (bytes.size() + train.packet_bytes - 1) / train.packet_bytes);
      taken_trains.push_back({train.to.port(), train.packets});
      for (std::size_t at = 0; at < bytes.size(); at += train.packet_bytes) {
        packets[train.to.port()].push_back(bytes.substr(at, train.packet_bytes));
      }
    }
    return taken;
  }
  std::size_t receive(BufferPool&, std::span<Arrival>) override { return 0; }
  int fd() const override { return -1; }
  Address address() const override { return {}; }

  struct Taken {
    std::size_t to, packets;
    bool operator==(const Taken&) const = default;
  };
  std::size_t room = ~std::size_t{0};
  int calls = 0;
  std::vector<Taken> taken_trains;
  std::vector<std::string> packets[8];  // by destination
};

std::vector<Address> addresses() {
  std::vector<Address> all;
  for (std::uint16_t i = 0; i < 8; ++i) all.push_back(Address().with_port(i));
  return all;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Outbox, JoinsHeaderPayloadAndPadding) {
  Outbox outbox(10);
  Recorder socket;
  const std::string header = "head", payload = "payload", padding = "00";
  outbox.add(1, bytes_of(header), bytes_of(payload), bytes_of(padding));
  outbox.add(1, bytes_of(header), {}, {});
  EXPECT_TRUE(outbox.flush(socket, addresses()));
  EXPECT_EQ(socket.packets[1], (std::vector<std::string>{"headpayload00", "head"}));
  EXPECT_EQ(socket.taken_trains, (std::vector<Recorder::Taken>{{1, 2}}));
}

TEST(Outbox, ATrainEndsAtTheKernelsLimits) {
  struct Limit {
    std::size_t bytes, packets, first_train;
  };
  for (const Limit& limit : {Limit{10, 65, 64}, Limit{1400, 50, train_bytes_max / 1400},
                             Limit{60'000, 2, 1}, Limit{train_bytes_max, 2, 1}}) {
    Outbox outbox(100);
    Recorder socket;
    const std::string packet(limit.bytes, 'x');
    for (std::size_t i = 0; i < limit.packets; ++i) outbox.add(0, bytes_of(packet), {}, {});
    EXPECT_TRUE(outbox.flush(socket, addresses()));
    EXPECT_EQ(socket.packets[0].size(), limit.packets);
    EXPECT_EQ(socket.taken_trains.front().packets, limit.first_train) << limit.bytes;
  }
}

// Only the last packet of a train may be shorter, and none may be longer.
TEST(Outbox, AShorterPacketEndsItsTrainAndALongerOneBeginsAnother) {
  Outbox outbox(10);
  Recorder socket;
  const std::string longer(20, 'l'), usual(10, 'u'), shorter(5, 's');
  for (const std::string* packet : {&usual, &shorter, &usual, &longer, &longer}) {
    outbox.add(0, bytes_of(*packet), {}, {});
  }
  EXPECT_TRUE(outbox.flush(socket, addresses()));
  EXPECT_EQ(socket.packets[0], (std::vector<std::string>{usual, shorter, usual, longer, longer}));
  EXPECT_EQ(socket.taken_trains, (std::vector<Recorder::Taken>{{0, 2}, {0, 1}, {0, 2}}));
}

TEST(Outbox, DestinationsTakeTurnsFromTheFirstOn) {
  Outbox outbox(100, 2);
  Recorder socket;
  const std::string odd(9, 'o'), even(10, 'e');
  for (const std::uint32_t destination : {0u, 1u, 3u}) {
    outbox.add(destination, bytes_of(odd), {}, {});
    outbox.add(destination, bytes_of(even), {}, {});  // a train of its own
  }
  EXPECT_TRUE(outbox.flush(socket, addresses()));
  EXPECT_EQ(socket.taken_trains,
            (std::vector<Recorder::Taken>{{3, 1}, {0, 1}, {1, 1}, {3, 1}, {0, 1}, {1, 1}}));
}

TEST(Outbox, NothingToSendIsNoCall) {
  Outbox outbox(1);
  Recorder socket;
  EXPECT_TRUE(outbox.flush(socket, addresses()));
  EXPECT_EQ(socket.calls, 0);
}

// EAGAIN: what did not go is sent later, once, in order; until then nothing may be added.
TEST(Outbox, AFullSocketGetsTheRestLater) {
  Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    Outbox outbox(200);
    Recorder socket;
    std::vector<std::string> sent[8];
    std::vector<std::string> kept;
    kept.reserve(200);
    const std::size_t count = 1 + rng.below(200);
    for (std::size_t i = 0; i < count; ++i) {
      const auto destination = static_cast<std::uint32_t>(rng.below(8));
      kept.emplace_back(1 + rng.below(3) * 700, static_cast<char>('a' + i % 26));
      sent[destination].push_back(kept.back());
      outbox.add(destination, bytes_of(kept.back()), {}, {});
    }
    EXPECT_EQ(outbox.full(), count == 200);
    socket.room = 0;
    EXPECT_FALSE(outbox.flush(socket, addresses()));
    EXPECT_FALSE(outbox.empty());
    int flushes = 0;
    do {
      socket.room = rng.below(4);
      ASSERT_LT(++flushes, 2000);
    } while (!outbox.flush(socket, addresses()));
    EXPECT_TRUE(outbox.empty());
    for (int i = 0; i < 8; ++i) EXPECT_EQ(socket.packets[i], sent[i]) << "destination " << i;
    EXPECT_TRUE(outbox.flush(socket, addresses()));
  }
}

}  // namespace
}  // namespace cais::io
