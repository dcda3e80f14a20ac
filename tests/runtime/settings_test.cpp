// Settings: every row is read, checked and shown by the one table.
#include "runtime/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace cais::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Variables = std::vector<std::pair<std::string, std::string>>;

Result<Settings> read(const Variables& variables) {
  std::vector<std::string> warnings;
  return settings_from(variables, &warnings);
}

std::string error_of(const Variables& variables) {
  const Result<Settings> settings = read(variables);
  return settings.ok() ? "no error" : settings.error().message;
}

TEST(Settings, DefaultsHoldWhereNothingIsSet) {
  const Result<Settings> settings = read({});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->transport, TransportChoice::automatic);
  EXPECT_EQ(settings->chunk_bytes, 262'144u);
  EXPECT_TRUE(settings->udp_gso);
  EXPECT_EQ(settings->packet_tags, wire::Tags::keyed);
  EXPECT_FALSE(settings->allocator);
}

TEST(Settings, EachKindOfValueIsRead) {
  const Result<Settings> settings = read({{"CAIS_TRANSPORT", "udp"},
                                          {"CAIS_CHUNK_BYTES", "128K"},
                                          {"CAIS_WINDOW", "1024"},
                                          {"CAIS_UDP_GSO", "0"},
                                          {"CAIS_PACKET_TAGS", "checksum"},
                                          {"CAIS_ARENA_MAX_BYTES", "8G"},
                                          {"CAIS_SOCKET_IFNAME", "^=eth0"},
                                          {"PATH", "/bin"}});
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->transport, TransportChoice::udp);
  EXPECT_EQ(settings->chunk_bytes, 131'072u);
  EXPECT_EQ(settings->window_fragments, 1024u);
  EXPECT_FALSE(settings->udp_gso);
  EXPECT_EQ(settings->packet_tags, wire::Tags::checksum);
  EXPECT_EQ(settings->arena_bytes_max, std::uint64_t{8} << 30);
  EXPECT_EQ(settings->socket_ifname, "^=eth0");
}

TEST(Settings, AnErrorNamesTheVariableItsValueAndWhatIsAllowed) {
  EXPECT_THAT(error_of({{"CAIS_TRANSPORT", "tcp"}}),
              testing::AllOf(HasSubstr("CAIS_TRANSPORT=tcp"), HasSubstr("auto, shm or udp")));
  EXPECT_THAT(error_of({{"CAIS_PACKET_TAGS", "none"}}), HasSubstr("keyed or checksum"));
  EXPECT_THAT(error_of({{"CAIS_CHUNK_BYTES", "32K"}}), HasSubstr("65536 to 1048576"));
  EXPECT_THAT(error_of({{"CAIS_WINDOW", "1000"}}), HasSubstr("a power of two"));
  EXPECT_THAT(error_of({{"CAIS_MTU", "100"}}), HasSubstr("0, or 576"));
  EXPECT_THAT(error_of({{"CAIS_UDP_GSO", "yes"}}), HasSubstr("0 or 1"));
  EXPECT_THAT(error_of({{"CAIS_DEBUG", "LOUD"}}), HasSubstr("TRACE"));
  EXPECT_THAT(error_of({{"CAIS_DEBUG_SUBSYS", "SHM,NONSENSE"}}), HasSubstr("NONSENSE"));
  EXPECT_THAT(error_of({{"CAIS_SOCKET_IFNAME", "eth0,,eth1"}}), HasSubstr("CAIS_SOCKET_IFNAME"));
}

TEST(Settings, NumbersThatAreNoneAreRefused) {
  for (const char* text : {"", "-1", "1e6", "262144x", "256KB", "0x40000", " 262144",
                           "99999999999999999999", "18014398509481984K"}) {
    EXPECT_NE(error_of({{"CAIS_CHUNK_BYTES", text}}), "no error") << text;
  }
  EXPECT_NE(error_of({{"CAIS_SPIN_US", "1K"}}), "no error");  // no bytes, no suffix
}

TEST(Settings, ZeroHasItsOwnMeaningOnlyWhereTheRowSaysSo) {
  EXPECT_EQ(error_of({{"CAIS_MTU", "0"}}), "no error");
  EXPECT_NE(error_of({{"CAIS_CHUNK_BYTES", "0"}}), "no error");
}

TEST(Settings, AnAliasSetsTheSameAndTheNameGoesBeforeIt) {
  EXPECT_EQ(read({{"CAIS_NIC_IFACE", "eth1"}})->socket_ifname, "eth1");
  for (const Variables& both :
       {Variables{{"CAIS_NIC_IFACE", "eth1"}, {"CAIS_SOCKET_IFNAME", "eth2"}},
        Variables{{"CAIS_SOCKET_IFNAME", "eth2"}, {"CAIS_NIC_IFACE", "eth1"}}}) {
    std::vector<std::string> warnings;
    EXPECT_EQ(settings_from(both, &warnings)->socket_ifname, "eth2");
    EXPECT_THAT(warnings, ElementsAre(HasSubstr("CAIS_NIC_IFACE differ")));
  }
}

/// A typing mistake once crashed a caller that wanted no warnings.
TEST(Settings, WarningsNeedNotBeWanted) {
  EXPECT_TRUE(settings_from(Variables{{"CAIS_CHUNK_BYTE", "65536"}}, nullptr).ok());
}

TEST(Settings, AnUnknownNameIsAWarningWithTheNearestRightOne) {
  std::vector<std::string> warnings;
  const Variables variables{{"CAIS_TRANSPROT", "shm"}, {"CAIS_NIC_IFACES", "eth0"}, {"OTHER", "1"}};
  ASSERT_TRUE(settings_from(variables, &warnings).ok());
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("the nearest is CAIS_TRANSPORT"),
                                    HasSubstr("the nearest is CAIS_NIC_IFACE")));
}

TEST(Settings, TheEnvironmentIsRead) {
  setenv("CAIS_SPIN_US", "7", 1);
  std::vector<std::string> warnings;
  const Result<Settings> settings = settings_from_environment(&warnings);
  unsetenv("CAIS_SPIN_US");
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->spin_us, 7u);
}

TEST(Settings, ThePageInTheTreeIsTheOneThatTheTableMakes) {
  std::ifstream file(CAIS_SOURCE_DIR "/docs/settings.md");
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_EQ(page.str(), settings_page()) << "build the target settings_page";
}

}  // namespace
}  // namespace cais::runtime
