// The key-value store over TCP, also against clients that speak another language.
#include "io/tcp_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>
#include <vector>

#include "io/clock.hpp"
#include "wire/bytes.hpp"

namespace cais::io {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

std::string free_address() {
  auto listener = Listener::open(*Address::parse("127.0.0.1:0"));
  CAIS_CHECK(listener.ok());
  return listener->address().to_string();
}

std::unique_ptr<TcpStore> open(const std::string& address, bool serve) {
  auto store = TcpStore::open(address, serve, seconds(10));
  EXPECT_TRUE(store.ok()) << store.error().message;
  return store.ok() ? std::move(store).value() : nullptr;
}

TEST(TcpStore, EveryClientReadsWhatOneHasSet) {
  const std::string address = free_address();
  const auto a = open(address, true);
  const auto b = open(address, false);
  const std::string bytes("\0\xff any bytes\n", 12);
  ASSERT_TRUE(a->set("key", bytes).ok());
  ASSERT_TRUE(b->set("", "").ok());
  EXPECT_EQ(*a->get("key", seconds(5)), bytes);
  EXPECT_EQ(*b->get("key", seconds(5)), bytes);
  EXPECT_EQ(*a->get("", seconds(5)), "");
}

TEST(TcpStore, AGetWaitsForTheKey) {
  const std::string address = free_address();
  const auto server = open(address, true);
  std::vector<std::thread> readers;
  for (int i = 0; i < 8; ++i) {
    readers.emplace_back(
        [&] { EXPECT_EQ(*open(address, false)->get("late", seconds(10)), "here"); });
  }
  std::this_thread::sleep_for(milliseconds(50));
  ASSERT_TRUE(server->set("late", "here").ok());
  for (std::thread& reader : readers) reader.join();
}

TEST(TcpStore, TheServerMayComeLate) {
  const std::string address = free_address();
  std::thread early([&] { EXPECT_EQ(*open(address, false)->get("k", seconds(10)), "v"); });
  std::this_thread::sleep_for(milliseconds(100));
  const auto server = open(address, true);
  ASSERT_TRUE(server->set("k", "v").ok());
  early.join();
}

TEST(TcpStore, AKeyIsSetOnce) {
  const auto store = open(free_address(), true);
  ASSERT_TRUE(store->set("k", "1").ok());
  const Result<void> again = store->set("k", "2");
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(again.error().message, HasSubstr("'k' was set before"));
  EXPECT_EQ(*store->get("k", seconds(5)), "1");
}

TEST(TcpStore, ATimeoutNamesTheKey) {
  const auto store = open(free_address(), true);
  const Result<std::string> value = store->get("never", milliseconds(50));
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().code, ErrorCode::timed_out);
  EXPECT_THAT(value.error().message, HasSubstr("'never'"));
}

TEST(TcpStore, LongValuesPassAndLongerOnesAreRefused) {
  const std::string address = free_address();
  const auto store = open(address, true);
  const std::string longest(store_value_bytes_max, 'x');
  ASSERT_TRUE(store->set(std::string(store_key_bytes_max, 'k'), longest).ok());
  EXPECT_EQ(*open(address, false)->get(std::string(store_key_bytes_max, 'k'), seconds(5)), longest);
  EXPECT_EQ(store->set("v", longest + "x").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(store->set(std::string(store_key_bytes_max + 1, 'k'), "").error().code,
            ErrorCode::invalid_argument);
}

TEST(TcpStore, StoresOfOneProcessShareTheServerAndItEndsWithTheLast) {
  const std::string address = free_address();
  auto first = open(address, true);
  auto second = open(address, true);
  ASSERT_TRUE(first->set("k", "v").ok());
  first.reset();
  EXPECT_EQ(*second->get("k", seconds(5)), "v");
  second.reset();
  const auto gone = TcpStore::open(address, false, milliseconds(100));
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, ErrorCode::timed_out);
  EXPECT_THAT(gone.error().message, HasSubstr(address));
  EXPECT_TRUE(open(address, true)->set("k", "again").ok());  // the port is free again at once
}

TEST(TcpStore, APortThatIsTakenIsAnErrorThatSaysWhatToDo) {
  const auto other = Listener::open(*Address::parse("127.0.0.1:0"));
  const auto store = TcpStore::open(other->address().to_string(), true, seconds(5));
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::unavailable);
  EXPECT_THAT(store.error().message, HasSubstr("choose another"));
}

TEST(TcpStore, SomethingElseThatAnswersIsNoRendezvous) {
  auto other = Listener::open(*Address::parse("127.0.0.1:0"));
  std::thread answers([&] {
    pollfd waiting{other->fd(), POLLIN, 0};
    wait_any({&waiting, 1}, seconds(5));
    Connection connection = other->accept();
    connection.send("HTTP/1.1 400 Bad Request");
    std::this_thread::sleep_for(milliseconds(100));
  });
  const auto store = TcpStore::open(other->address().to_string(), false, seconds(5));
  answers.join();
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(store.error().message, HasSubstr("no rendezvous of CAIS"));
}

TEST(TcpStore, AServerThatEndsIsAnErrorAtOnce) {
  const std::string address = free_address();
  auto server = open(address, true);
  const auto client = open(address, false);
  std::thread ends([&] {
    std::this_thread::sleep_for(milliseconds(50));
    server.reset();
  });
  const Instant start = now();
  const Result<std::string> value = client->get("k", seconds(20));
  ends.join();
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().code, ErrorCode::unavailable);
  EXPECT_LT(now() - start, seconds(5));
}

TEST(TcpStore, ARendezvousNeedsAPort) {
  for (const char* text : {"127.0.0.1", "", "127.0.0.1:x", "127.0.0.1:0"}) {
    const auto store = TcpStore::open(text, false, milliseconds(50));
    ASSERT_FALSE(store.ok()) << text;
    EXPECT_EQ(store.error().code, ErrorCode::invalid_argument) << text;
  }
}

// What a stranger sends ends its own connection and nothing else.
class TcpStoreStranger : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(TcpStoreStranger, IsDroppedAndTheOthersAreServed) {
  const std::string address = free_address();
  const auto store = open(address, true);
  auto stranger = connect_to(Address(), *Address::parse(address), now() + seconds(5));
  ASSERT_TRUE(stranger.ok());
  for (const std::string& message : GetParam()) stranger->send(message);
  std::string answer;
  const Instant deadline = now() + seconds(5);
  while (stranger->state() == Connection::State::open && now() < deadline) {
    pollfd waiting{stranger->fd(), POLLIN, 0};
    wait_any({&waiting, 1}, milliseconds(50));
    stranger->receive(answer);
  }
  EXPECT_NE(stranger->state(), Connection::State::open);
  EXPECT_TRUE(store->set("k", "v").ok());
  EXPECT_EQ(*store->get("k", seconds(5)), "v");
}

const std::string hello(store_hello);
INSTANTIATE_TEST_SUITE_P(
    Messages, TcpStoreStranger,
    testing::Values(
        std::vector<std::string>{"hello"}, std::vector<std::string>{""},
        std::vector<std::string>{hello, ""}, std::vector<std::string>{hello, "s"},
        std::vector<std::string>{hello, std::string("s\x05\x00", 3)},
        std::vector<std::string>{hello, std::string("g\x00\x01kv", 5)},
        std::vector<std::string>{hello, std::string("x\x00\x00", 3)},
        std::vector<std::string>{hello, std::string("g\x00\x01k", 4), std::string("g\x00\x01k", 4)},
        std::vector<std::string>{
            hello, std::string("s\x00\x01k", 4) + std::string(store_value_bytes_max + 1, 'v')}));

}  // namespace
}  // namespace cais::io
