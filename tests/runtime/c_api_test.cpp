// The C API alone: what it refuses, in which words, and a group of one rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "cais/cais.h"

namespace {

using testing::HasSubstr;

// A port that is free now, as HOST:PORT.
std::string free_rendezvous() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  bind(fd, reinterpret_cast<sockaddr*>(&address), length);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  close(fd);
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

class CApi : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cais_comm_create(free_rendezvous().c_str(), "one", 0, 1, &comm_), CAIS_OK)
        << cais_last_error();
  }
  ~CApi() override { cais_comm_destroy(comm_); }

  cais_comm* comm_ = nullptr;
};

TEST_F(CApi, AGroupOfOneRankGetsItsOwnDataBack) {
  EXPECT_EQ(cais_comm_rank(comm_), 0);
  EXPECT_EQ(cais_comm_ranks(comm_), 1);
  EXPECT_STRNE(cais_comm_transport(comm_), "");
  const float send[3] = {1, 2, 3};
  float recv[3] = {};
  EXPECT_EQ(cais_all_reduce(comm_, send, recv, 3, CAIS_FLOAT32, CAIS_SUM), CAIS_OK);
  EXPECT_THAT(recv, testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(cais_barrier(comm_), CAIS_OK);
}

TEST_F(CApi, NumbersThatStandForNothingAreRefused) {
  float data[1] = {};
  EXPECT_EQ(cais_all_reduce(comm_, data, data, 1, static_cast<cais_dtype>(9), CAIS_SUM),
            CAIS_INVALID_ARGUMENT);
  EXPECT_THAT(cais_last_error(), HasSubstr("number 9"));
  EXPECT_EQ(cais_all_reduce(comm_, data, data, 1, CAIS_FLOAT32, static_cast<cais_reduce_op>(7)),
            CAIS_INVALID_ARGUMENT);
  EXPECT_EQ(cais_broadcast(comm_, data, 1, CAIS_FLOAT32, 1), CAIS_INVALID_ARGUMENT);
  EXPECT_THAT(cais_last_error(), HasSubstr("root 1"));
  EXPECT_EQ(cais_barrier(nullptr), CAIS_INVALID_ARGUMENT);
}

TEST_F(CApi, EachThreadHasItsOwnLastError) {
  EXPECT_EQ(cais_barrier(nullptr), CAIS_INVALID_ARGUMENT);
  std::thread other([] { EXPECT_STREQ(cais_last_error(), ""); });
  other.join();
}

TEST(CApiCreate, WrongArgumentsAreNamed) {
  cais_comm* comm = nullptr;
  EXPECT_EQ(cais_comm_create(nullptr, "x", 0, 1, &comm), CAIS_INVALID_ARGUMENT);
  EXPECT_EQ(cais_comm_create(free_rendezvous().c_str(), "x", 2, 2, &comm), CAIS_INVALID_ARGUMENT);
  EXPECT_THAT(cais_last_error(), HasSubstr("rank 2 of 2"));
  EXPECT_EQ(cais_comm_create(free_rendezvous().c_str(), "x", 0, 65, &comm), CAIS_INVALID_ARGUMENT);
  EXPECT_EQ(cais_comm_create("127.0.0.1", "x", 0, 1, &comm), CAIS_INVALID_ARGUMENT);
  EXPECT_THAT(cais_last_error(), HasSubstr("HOST:PORT"));
  EXPECT_EQ(comm, nullptr);
}

TEST(CApiCreate, AWrongSettingIsNamed) {
  setenv("CAIS_TRANSPORT", "tcp", 1);
  cais_comm* comm = nullptr;
  EXPECT_EQ(cais_comm_create(free_rendezvous().c_str(), "x", 0, 1, &comm), CAIS_INVALID_ARGUMENT);
  unsetenv("CAIS_TRANSPORT");
  EXPECT_THAT(cais_last_error(), HasSubstr("CAIS_TRANSPORT=tcp"));
}

TEST(CApiMemory, IsAlignedAndZero) {
  for (int round = 0; round < 3; ++round) {
    auto* memory = static_cast<unsigned char*>(cais_alloc(100'000));
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 4096, 0u);
    EXPECT_TRUE(
        std::all_of(memory, memory + 100'000, [](unsigned char byte) { return byte == 0; }));
    std::memset(memory, 1, 100'000);
    cais_free(memory);
  }
  cais_free(nullptr);
}

TEST(CApiMemory, MoreThanThereIsIsNull) {
  EXPECT_EQ(cais_alloc(~std::size_t{0}), nullptr);
  EXPECT_THAT(cais_last_error(), HasSubstr("CAIS_ARENA_MAX_BYTES"));
}

}  // namespace
