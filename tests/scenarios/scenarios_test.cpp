// Plays every scenario in this folder (*.pkt): packets in, packets expected out, one file for each
// clause of the protocol.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/scenarios/script.hpp"

namespace cais::scenarios {
namespace {

std::vector<std::filesystem::path> scenario_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(CAIS_SCENARIOS)) {
    if (entry.path().extension() == ".pkt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::unique_ptr<Stage> set_up(const std::string& line) {
  Words words(line);
  if (words.take("switch")) return make_switch_stage(words);
  words.need("agent");
  return make_agent_stage(words);
}

/// Plays the lines; what goes wrong is thrown as "line N: …". A line that begins with "switch
/// ranks" or "agent rank" sets up a fresh machine.
void play(std::istream& lines) {
  std::unique_ptr<Stage> stage;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    try {
      if (Words(line).empty()) continue;
      if (line.starts_with("switch ranks") || line.starts_with("agent rank")) {
        if (stage) stage->finish();
        stage = set_up(line);
      } else if (!stage) {
        throw Failure("a scenario begins with 'switch ranks …' or 'agent rank …'");
      } else {
        stage->step(Words(line));
      }
    } catch (const std::exception& failure) {
      throw Failure("line " + std::to_string(number) + ": " + failure.what() + "\n  " + line);
    }
  }
  if (!stage) throw Failure("the scenario is empty");
  stage->finish();
}

class Scenario : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Scenario, Plays) {
  std::ifstream file(GetParam());
  try {
    play(file);
  } catch (const Failure& failure) {
    FAIL() << GetParam().filename().string() << ": " << failure.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Protocol, Scenario, testing::ValuesIn(scenario_files()),
                         [](const auto& scenario) {
                           std::string name = scenario.param.stem().string();
                           std::replace_if(
                               name.begin(), name.end(),
                               [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

/// The runner itself must be able to fail.
TEST(Runner, RefusesWhatIsNotExpected) {
  const char* wrong[] = {
      "switch ranks 1\nop A all_reduce sum int64 2\nrank 0 sends seq 0 [1 2]\n",
      "switch ranks 1\nop A all_reduce sum int64 2\nrank 0 sends seq 0 [1 2]\n"
      "expect result seq 0 [1 3] to 0\n",
      "switch ranks 2\nop A all_reduce sum int64 2\nrank 0 sends seq 0 [1 2]\n"
      "expect drop stale_seq\n",
      "agent rank 0 ranks 2\nop A all_reduce sum int64 2\nexpect nothing\n",
      "rank 0 sends seq 0\n",
      "",
  };
  for (const char* text : wrong) {
    std::istringstream lines(text);
    EXPECT_THROW(play(lines), Failure) << text;
  }
}

}  // namespace
}  // namespace cais::scenarios
