// Messages over TCP: what is cut, too long, refused, or comes after the end.
#include "io/control/connection.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <thread>

#include "io/clock.hpp"
#include "io/poller.hpp"

namespace cais::io {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Address loopback() { return *Address::parse("127.0.0.1"); }

struct Pair {
  Connection client, server;
};

Pair connected() {
  auto listener = Listener::open(loopback());
  EXPECT_TRUE(listener.ok());
  auto client = connect_to(loopback(), listener->address(), now() + seconds(5));
  EXPECT_TRUE(client.ok());
  pollfd waiting{listener->fd(), POLLIN, 0};
  wait_any({&waiting, 1}, seconds(5));
  return {std::move(*client), listener->accept()};
}

/// One end speaks whatever bytes the test gives it.
struct Raw {
  Fd socket;
  Connection connection;
};

Raw raw() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {Fd(ends[0]), Connection(Fd(ends[1]))};
}

void write(const Raw& raw, const std::string& bytes) {
  ASSERT_EQ(::send(raw.socket.get(), bytes.data(), bytes.size(), 0),
            static_cast<ssize_t>(bytes.size()));
}

std::string length_prefix(std::uint32_t length) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(length >> shift & 0xff);
  return bytes;
}

/// Until a message has come, the connection has ended or five seconds are over.
bool receive(Connection& connection, std::string& message) {
  const Instant limit = now() + seconds(5);
  while (!connection.receive(message)) {
    if (connection.state() != Connection::State::open || now() > limit) return false;
    pollfd waiting{connection.fd(), POLLIN, 0};
    wait_any({&waiting, 1}, milliseconds(100));
  }
  return true;
}

TEST(Connection, CarriesMessagesInOrder) {
  Pair pair = connected();
  std::string message;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, message_bytes_max}) {
    pair.client.send(std::string(bytes, 'x'));
    ASSERT_TRUE(receive(pair.server, message)) << bytes;
    EXPECT_EQ(message, std::string(bytes, 'x'));
  }
  pair.server.send("first");
  pair.server.send("second");
  ASSERT_TRUE(receive(pair.client, message));
  EXPECT_EQ(message, "first");
  ASSERT_TRUE(receive(pair.client, message));
  EXPECT_EQ(message, "second");
}

TEST(Connection, AMessageComesWhenItsLastByteHasCome) {
  Raw ends = raw();
  const std::string bytes = length_prefix(5) + "hello" + length_prefix(0);
  std::string message;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(i < 9 && ends.connection.receive(message)) << i;
    write(ends, bytes.substr(i, 1));
    if (i == 8) {
      ASSERT_TRUE(ends.connection.receive(message));
      EXPECT_EQ(message, "hello");
    }
  }
  ASSERT_TRUE(ends.connection.receive(message));
  EXPECT_EQ(message, "");
}

TEST(Connection, ATooLongMessageBreaksIt) {
  Raw ends = raw();
  write(ends, length_prefix(message_bytes_max + 1) + "whatever");
  std::string message;
  EXPECT_FALSE(ends.connection.receive(message));
  EXPECT_EQ(ends.connection.state(), Connection::State::broken);
  EXPECT_NE(ends.connection.reason(), "");
  EXPECT_FALSE(ends.connection.receive(message));
  ends.connection.send("into the void");  // is no error
  EXPECT_FALSE(ends.connection.wants_write());
}

TEST(Connection, WhatTheClosedPeerHadSaidStillComes) {
  Raw ends = raw();
  write(ends, length_prefix(3) + "bye" + length_prefix(10) + "cut");
  ends.socket = Fd();
  std::string message;
  ASSERT_TRUE(ends.connection.receive(message));
  EXPECT_EQ(message, "bye");
  EXPECT_FALSE(ends.connection.receive(message));
  EXPECT_EQ(ends.connection.state(), Connection::State::closed);
}

TEST(Connection, SendingToAClosedPeerBreaksItAndRaisesNoSignal) {
  Pair pair = connected();
  pair.server = Connection();
  const Instant limit = now() + seconds(5);
  while (pair.client.state() != Connection::State::broken && now() < limit) {
    pair.client.send("anybody?");
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(pair.client.state(), Connection::State::broken);
  EXPECT_NE(pair.client.reason(), "");
}

TEST(Connection, APeerThatTakesNothingBreaksItAtTheBound) {
  Raw ends = raw();
  const std::string message(message_bytes_max, 'x');
  std::size_t sent = 0;
  while (ends.connection.state() == Connection::State::open && sent < 2 * unsent_bytes_max) {
    ends.connection.send(message);
    sent += message.size();
  }
  EXPECT_EQ(ends.connection.state(), Connection::State::broken);
  EXPECT_NE(ends.connection.reason().find("takes no more"), std::string::npos);
  EXPECT_GT(sent, unsent_bytes_max);
  EXPECT_FALSE(ends.connection.wants_write());
}

TEST(Connection, AFullKernelBufferIsFlushedLater) {
  Raw ends = raw();
  const std::string message(message_bytes_max, 'y');
  int messages = 0;
  while (!ends.connection.wants_write()) {
    ends.connection.send(message);
    ++messages;
  }
  std::thread reader([&] {
    std::string bytes(65536, '\0');
    std::size_t left = static_cast<std::size_t>(messages) * (message.size() + 4);
    while (left > 0) {
      const ssize_t count = ::recv(ends.socket.get(), bytes.data(), bytes.size(), 0);
      ASSERT_GT(count, 0);
      left -= static_cast<std::size_t>(count);
    }
  });
  while (ends.connection.wants_write()) ends.connection.flush();
  reader.join();
  EXPECT_EQ(ends.connection.state(), Connection::State::open);
}

TEST(Listener, WithNobodyThereGivesAClosedConnection) {
  auto listener = Listener::open(loopback());
  ASSERT_TRUE(listener.ok());
  const Connection nobody = listener->accept();
  EXPECT_LT(nobody.fd(), 0);
  EXPECT_EQ(nobody.state(), Connection::State::closed);
}

TEST(Listener, APortInUseIsNamed) {
  auto first = Listener::open(loopback());
  ASSERT_TRUE(first.ok());
  const auto second = Listener::open(first->address());
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find(first->address().to_string()), std::string::npos);
}

TEST(ConnectTo, ARefusedConnectionNamesBothEnds) {
  Address nobody;
  {
    auto listener = Listener::open(loopback());
    ASSERT_TRUE(listener.ok());
    nobody = listener->address();
  }
  const auto connection = connect_to(loopback(), nobody, now() + seconds(5));
  ASSERT_FALSE(connection.ok());
  EXPECT_NE(connection.error().message.find(nobody.to_string()), std::string::npos);
  EXPECT_NE(connection.error().message.find("from 127.0.0.1"), std::string::npos);
}

TEST(ConnectTo, AnAddressOfAnotherFamilyIsAnError) {
  auto listener = Listener::open(loopback());
  ASSERT_TRUE(listener.ok());
  EXPECT_FALSE(connect_to(*Address::parse("::1"), listener->address(), now() + seconds(5)).ok());
}

}  // namespace
}  // namespace cais::io
