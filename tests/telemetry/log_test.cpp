// The log: which lines are shown, what they look like, and where they go.
#include "telemetry/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace cais::telemetry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

class LogTest : public testing::Test {
 protected:
  LogTest() {
    std::string name = testing::TempDir() + "cais_log_XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~LogTest() override { std::filesystem::remove_all(folder_); }

  Log open(std::string_view level, std::string_view subsys) {
    auto config = parse_log_config(level, subsys, folder_ + "/%h.%p.log");
    CAIS_CHECK(config.ok());
    auto log = Log::open(*config);
    CAIS_CHECK(log.ok());
    return *log;
  }
  std::vector<std::string> lines() {
    std::vector<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) result.push_back(line);
    }
    return result;
  }
  std::string folder_;
};

TEST_F(LogTest, ALineNamesHostProcessThreadRankLevelAndSubsystem) {
  open("INFO", "").with_rank(3).info(Subsystem::shm, "{} ranks", 4);
  EXPECT_THAT(lines(),
              ElementsAre(MatchesRegex("[^:]+:[0-9]+:[0-9]+ \\[3\\] CAIS INFO SHM 4 ranks")));
}

TEST_F(LogTest, ALevelShowsItselfAndThoseBefore) {
  const Log log = open("info", "");
  log.version("1.2");
  log.warn(Subsystem::init, "w");
  log.trace(Subsystem::init, "t");
  EXPECT_THAT(lines(),
              ElementsAre(HasSubstr("CAIS VERSION INIT CAIS version 1.2"), HasSubstr("WARN")));
}

TEST_F(LogTest, TheVersionIsNoWarning) {
  open("warn", "").version("1.2");
  EXPECT_THAT(lines(), ElementsAre());
  open("version", "").version("1.2");
  EXPECT_EQ(lines().size(), 1u);
}

TEST_F(LogTest, SubsystemsAreChosenOrExcludedButWarningsAlwaysShow) {
  const Log some = open("TRACE", "SHM,udp");
  EXPECT_TRUE(some.enabled(Level::trace, Subsystem::shm));
  EXPECT_TRUE(some.enabled(Level::info, Subsystem::udp));
  EXPECT_FALSE(some.enabled(Level::info, Subsystem::init));
  EXPECT_TRUE(some.enabled(Level::warn, Subsystem::init));
  const Log others = open("TRACE", "^SHM");
  EXPECT_FALSE(others.enabled(Level::info, Subsystem::shm));
  EXPECT_TRUE(others.enabled(Level::info, Subsystem::init));
  EXPECT_FALSE(open("TRACE", "^ALL").enabled(Level::info, Subsystem::init));
}

TEST_F(LogTest, TheDefaultShowsWarningsAndASilentLogNothing) {
  EXPECT_TRUE(open("", "").enabled(Level::warn, Subsystem::init));
  EXPECT_FALSE(open("", "").enabled(Level::info, Subsystem::init));
  EXPECT_FALSE(Log().enabled(Level::warn, Subsystem::init));
  Log().warn(Subsystem::init, "nobody hears this");
}

TEST_F(LogTest, LinesOfManyThreadsStayWhole) {
  const Log log = open("INFO", "");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) log.info(Subsystem::torch, "{}", std::string(100, 'x'));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines().size(), 800u);
  for (const std::string& line : lines())
    EXPECT_THAT(line, MatchesRegex("[^ ]+ CAIS INFO TORCH x{100}"));
}

TEST(LogConfig, WrongWordsAreNamed) {
  EXPECT_THAT(parse_log_config("LOUD", "", "").error().message, HasSubstr("'LOUD'"));
  EXPECT_THAT(parse_log_config("", "SHM,FOO", "").error().message, HasSubstr("'FOO'"));
}

TEST(LogConfig, AFileThatCannotBeOpenedIsAnError) {
  const auto log = Log::open({.level = Level::info, .file = "/dev/null/x.log"});
  ASSERT_FALSE(log.ok());
  EXPECT_THAT(log.error().message, HasSubstr("CAIS_DEBUG_FILE '/dev/null/x.log'"));
}

}  // namespace
}  // namespace cais::telemetry
