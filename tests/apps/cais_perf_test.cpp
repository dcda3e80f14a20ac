// cais_perf as its users meet it: its data against the kernels, its output, and its end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "apps/cais_perf/data.hpp"
#include "base/check.hpp"
#include "numeric/reduce.hpp"

namespace cais::perf {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

struct Ended {
  int status;
  std::string output;  // both streams
};

Ended run(const std::string& words) {
  FILE* pipe = popen((std::string(CAIS_PERF) + " " + words + " 2>&1").c_str(), "r");
  CAIS_CHECK(pipe != nullptr);
  Ended ended{};
  std::array<char, 4096> bytes{};
  while (std::size_t count = fread(bytes.data(), 1, bytes.size(), pipe)) {
    ended.output.append(bytes.data(), count);
  }
  ended.status = pclose(pipe);
  return ended;
}

std::vector<std::string> rows(const std::string& output) {
  std::vector<std::string> found;
  std::istringstream stream(output);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with('#')) found.push_back(line);
  }
  return found;
}

TEST(CaisPerfData, WhatIsExpectedIsWhatTheKernelsCompute) {
  constexpr std::size_t count = 200;
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                            DType::int8, DType::uint8, DType::int32, DType::int64}) {
    for (const ReduceOp op :
         {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::product}) {
      for (const int ranks : {1, 2, 3, 8, 64}) {
        std::vector<std::vector<std::byte>> buffers(ranks, std::vector<std::byte>(count * 8));
        std::vector<const std::byte*> inputs;
        for (int rank = 0; rank < ranks; ++rank) {
          Pattern::contribution(dtype, op, rank, 1).fill(buffers[rank].data(), 5, count);
          inputs.push_back(buffers[rank].data());
        }
        std::vector<std::byte> result(count * 8);
        std::byte* output = result.data();
        const auto reducer = numeric::Reducer::find({.op = op,
                                                     .input = dtype,
                                                     .output = dtype,
                                                     .divisor = static_cast<std::uint32_t>(ranks)});
        ASSERT_TRUE(reducer.has_value());
        (*reducer)({&output, 1}, inputs, count);
        EXPECT_EQ(Pattern::reduced(dtype, op, ranks, 1).wrong(output, 5, count), 0u)
            << to_string(dtype) << " " << to_string(op) << " " << ranks;
      }
    }
  }
}

TEST(CaisPerfData, EveryWrongElementIsCounted) {
  const Pattern pattern = Pattern::contribution(DType::float32, ReduceOp::sum, 2, 0);
  std::vector<float> elements(1000);
  pattern.fill(elements.data(), 11, elements.size());
  EXPECT_EQ(pattern.wrong(elements.data(), 11, elements.size()), 0u);
  elements[0] += 1;
  elements[500] += 1;
  elements[999] += 1;
  EXPECT_EQ(pattern.wrong(elements.data(), 11, elements.size()), 3u);
}

TEST(CaisPerfData, PlacesRanksAndGenerationsDiffer) {
  std::vector<float> elements(97);
  Pattern::contribution(DType::float32, ReduceOp::sum, 2, 0).fill(elements.data(), 0, 97);
  for (const auto& [rank, generation, first] : {std::tuple{3, 0, 0}, {2, 1, 0}, {2, 0, 1}}) {
    EXPECT_GT(Pattern::contribution(DType::float32, ReduceOp::sum, rank, generation)
                  .wrong(elements.data(), first, 97),
              90u);
  }
}

class CaisPerfOp : public testing::TestWithParam<std::string> {};

TEST_P(CaisPerfOp, RunsItsOwnRanksAndFindsTheDataRight) {
  for (const char* more :
       {"--ranks 3 -b 1 -e 70K -f 9", "--ranks 2 --memory cais -d bfloat16 -b 64K -e 64K",
        "--ranks 1 -b 4 -e 4", "--ranks 4 -r 3 -o max -d int32 -b 16 -e 4096 -i 1360"}) {
    const Ended ended = run(GetParam() + " -n 2 -w 1 " + more);
    EXPECT_EQ(ended.status, 0) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("# Wrong elements: 0"));
    EXPECT_FALSE(rows(ended.output).empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, CaisPerfOp,
                         testing::Values("all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                         "reduce", "all_to_all", "barrier"),
                         [](const auto& test) { return test.param; });

TEST(CaisPerf, LinesAreJsonOnePerSize) {
  const Ended ended = run("all_reduce --ranks 2 -b 16 -e 1K -f 8 -n 5 --jsonl");
  ASSERT_EQ(ended.status, 0) << ended.output;
  std::vector<std::size_t> sizes;
  for (const std::string& row : rows(ended.output)) {
    const auto line = nlohmann::json::parse(row);
    sizes.push_back(line["bytes"]);
    EXPECT_EQ(line["op"], "all_reduce");
    EXPECT_EQ(line["ranks"], 2);
    EXPECT_EQ(line["wrong"], 0);
    EXPECT_LE(line["us_min"], line["us"]);
    EXPECT_LE(line["us"], line["p99_us"]);
  }
  EXPECT_THAT(sizes, testing::ElementsAre(16, 128, 1024));
}

TEST(CaisPerf, TheJsonFileHoldsTheRun) {
  const std::string path = testing::TempDir() + "cais_perf_" + std::to_string(getpid()) + ".json";
  const Ended ended = run("all_gather --ranks 2 -b 1K -e 4K -n 2 -J " + path);
  ASSERT_EQ(ended.status, 0) << ended.output;
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  EXPECT_EQ(json["config"]["op"], "all_gather");
  EXPECT_EQ(json["config"]["ranks"], 2);
  ASSERT_EQ(json["results"].size(), 3u);
  EXPECT_EQ(json["results"][1]["size"], 2048);
  EXPECT_EQ(json["results"][1]["out_of_place"]["wrong"], 0);
  EXPECT_GT(json["results"][1]["in_place"]["busbw_gbs"], 0);
  unlink(path.c_str());
}

TEST(CaisPerf, AFileThatCannotBeWrittenIsAFailure) {
  const Ended ended = run("barrier --ranks 2 -n 2 -J /dev/null/x.json");
  EXPECT_NE(ended.status, 0);
  EXPECT_THAT(ended.output, HasSubstr("cannot write /dev/null/x.json"));
}

TEST(CaisPerf, WrongWordsAreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "OP"},
      {"all_reduce -d float12", "no 'float12'"},
      {"all_sum", "no 'all_sum'"},
      {"all_reduce -b 1M -e 1K", "-e is less than -b"},
      {"all_reduce --ranks 65", "--ranks"},
      {"broadcast --ranks 2 -r 2", "--root must be less"},
      {"all_reduce --rank 0", "--world"},
      {"all_reduce --rank 2 --world 2 --rendezvous 127.0.0.1:1", "--rank must be less"},
      {"all_reduce --ranks 2 --rank 0 --world 2 --rendezvous 127.0.0.1:1", "--ranks"}};
  for (const auto& [words, expected] : cases) {
    const Ended ended = run(words);
    EXPECT_NE(ended.status, 0) << words;
    EXPECT_THAT(ended.output, HasSubstr(expected)) << words;
  }
  EXPECT_EQ(run("--help").status, 0);
}

TEST(CaisPerf, AnErrorOfARankIsToldAndEndsTheRun) {
  setenv("CAIS_CHUNK_BYTES", "12", 1);
  const Ended refused = run("all_reduce --ranks 2 -n 2");
  unsetenv("CAIS_CHUNK_BYTES");
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.output, HasSubstr("CAIS_CHUNK_BYTES=12 is not allowed"));
}

// ---- how a run ends ---------------------------------------------------------------------------

std::vector<pid_t> children_of(pid_t parent) {
  const std::string id = std::to_string(parent);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> children;
  for (pid_t child; file >> child;) children.push_back(child);
  return children;
}

bool alive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string id, name, state;
  return file >> id >> name >> state && state != "Z";
}

bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 500; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(20));
  }
  return false;
}

// A run that would go on for minutes, once all its ranks are there.
class CaisPerfEnd : public testing::Test {
 protected:
  void SetUp() override {
    run_ = fork();
    if (run_ == 0) {
      freopen("/dev/null", "w", stdout);
      execl(CAIS_PERF, "cais_perf", "all_reduce", "--ranks", "3", "-b", "4M", "-e", "4M", "-n",
            "1000000", nullptr);
      _exit(127);
    }
    ASSERT_TRUE(eventually([&] { return children_of(run_).size() == 3; }));
    std::this_thread::sleep_for(milliseconds(200));
    ranks_ = children_of(run_);
  }
  // Its exit status; -1 when it ended by a signal.
  int status() {
    int status = 0;
    EXPECT_EQ(waitpid(run_, &status, 0), run_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  bool all_gone() {
    return eventually([&] {
      return std::none_of(ranks_.begin(), ranks_.end(), [](pid_t rank) { return alive(rank); });
    });
  }

  pid_t run_ = 0;
  std::vector<pid_t> ranks_;
};

TEST_F(CaisPerfEnd, ARankThatIsKilledEndsTheOthers) {
  kill(ranks_[1], SIGKILL);
  EXPECT_EQ(status(), 1);
  EXPECT_TRUE(all_gone());
}

TEST_F(CaisPerfEnd, AnInterruptEndsAll) {
  kill(run_, SIGTERM);
  EXPECT_EQ(status(), 1);
  EXPECT_TRUE(all_gone());
}

TEST_F(CaisPerfEnd, KillingTheRunEndsItsRanks) {
  kill(run_, SIGKILL);
  EXPECT_EQ(status(), -1);
  EXPECT_TRUE(all_gone());
}

}  // namespace
}  // namespace cais::perf
