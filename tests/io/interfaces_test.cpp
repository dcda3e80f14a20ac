// CAIS_SOCKET_IFNAME: NCCL's syntax, and which interface it chooses.
#include "io/interfaces.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cais::io {
namespace {

const std::vector<Interface> host{
    {.name = "lo", .address = "127.0.0.1", .loopback = true},
    {.name = "docker0", .address = "172.17.0.1"},
    {.name = "eth0", .address = "fd00::2", .ipv6 = true},
    {.name = "eth0", .address = "10.0.0.2"},
    {.name = "eth01", .address = "10.0.1.2"},
    {.name = "ens1", .address = "10.0.2.2"},
};

std::string chosen(std::string_view text, const std::vector<Interface>& interfaces = host) {
  const Result<Interface> interface = choose_interface(text, interfaces);
  return interface.ok() ? interface->name + " " + interface->address : interface.error().message;
}

TEST(Interfaces, TheDefaultIsTheFirstThatIsNeitherLoopbackNorDocker) {
  EXPECT_EQ(chosen(""), "eth0 10.0.0.2");
  EXPECT_EQ(chosen("", {host[0], host[1]}), "docker0 172.17.0.1");
  EXPECT_EQ(chosen("", {host[0]}), "lo 127.0.0.1");
}

TEST(Interfaces, NamesArePrefixesInOrderOfPreference) {
  EXPECT_EQ(chosen("ens,eth"), "ens1 10.0.2.2");
  EXPECT_EQ(chosen("ib,eth"), "eth0 10.0.0.2");
  EXPECT_EQ(chosen("lo"), "lo 127.0.0.1");
}

TEST(Interfaces, AnEqualsSignMeansExactly) {
  EXPECT_EQ(chosen("=eth01"), "eth01 10.0.1.2");
  EXPECT_THAT(chosen("=eth"), testing::HasSubstr("matches no interface"));
}

TEST(Interfaces, ACaretExcludes) {
  EXPECT_EQ(chosen("^eth,docker"), "ens1 10.0.2.2");
  EXPECT_EQ(chosen("^=eth0"), "docker0 172.17.0.1");
  EXPECT_EQ(chosen("^docker,eth,ens"), "lo 127.0.0.1");
}

TEST(Interfaces, AnErrorListsWhatThereIs) {
  EXPECT_THAT(chosen("wlan"),
              testing::AllOf(testing::HasSubstr("'wlan'"), testing::HasSubstr("ens1 10.0.2.2")));
  EXPECT_THAT(chosen("", {}), testing::HasSubstr("there are: none"));
}

TEST(Interfaces, BadListsAreRefused) {
  for (const char* text :
       {"^", "=", "eth0,", ",eth0", "eth0,^lo", "a_name_longer_than_linux_has"}) {
    EXPECT_FALSE(parse_interface_pattern(text).ok()) << text;
  }
}

TEST(Interfaces, ThisHostHasALoopback) {
  const auto interfaces = interfaces_up();
  ASSERT_TRUE(interfaces.ok());
  EXPECT_THAT(*interfaces, testing::Contains(testing::Field(&Interface::address, "127.0.0.1")));
}

}  // namespace
}  // namespace cais::io
