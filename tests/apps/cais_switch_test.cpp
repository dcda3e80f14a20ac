// The program cais-switch as its users meet it: how it starts, serves, ends, and what ranks hear
// when it is killed.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "io/control/connection.hpp"
#include "tests/runtime/udp/checks.hpp"

namespace cais::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

/// A running cais-switch. Its output is read line by line.
class Program {
 public:
  explicit Program(std::vector<std::string> flags) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    std::vector<char*> arguments{const_cast<char*>(CAIS_SWITCH)};
    for (std::string& flag : flags) arguments.push_back(flag.data());
    arguments.push_back(nullptr);
    pid_ = ::fork();
    EXPECT_GE(pid_, 0);
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::dup2(ends[1], STDERR_FILENO);
      ::execv(CAIS_SWITCH, arguments.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    output_ = ::fdopen(ends[0], "r");
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (!status_) kill(SIGKILL);
    (void)wait();
    std::fclose(output_);
  }

  std::string line() {
    std::array<char, 1024> text{};
    return std::fgets(text.data(), text.size(), output_) == nullptr ? "" : text.data();
  }
  std::string rest() {
    std::string all;
    for (std::string one = line(); !one.empty(); one = line()) all += one;
    return all;
  }
  void kill(int signal) const { ::kill(pid_, signal); }
  /// As waitpid(2) says it.
  int wait() {
    if (!status_) ::waitpid(pid_, &status_.emplace(), 0);
    return *status_;
  }

 private:
  pid_t pid_ = -1;
  FILE* output_ = nullptr;
  std::optional<int> status_;
};

/// On the loopback interface, ready to serve.
class Switch : public Program {
 public:
  explicit Switch(const std::string& management_port = "0")
      : Program({"--listen", "127.0.0.1", "--cores", "2", "--management", management_port}) {
    const std::string ready = line();
    const std::size_t at = ready.find("CAIS_SWITCH_IP=");
    EXPECT_NE(at, std::string::npos) << ready;
    address_ = ready.substr(at + 15, ready.find('\n') - at - 15);
  }
  const std::string& address() const { return address_; }
  std::string port() const { return address_.substr(address_.find(':') + 1); }

 private:
  std::string address_;
};

struct Ended {
  int status;
  std::string output;
};

Ended run(const std::vector<std::string>& flags) {
  Program program(flags);
  Ended ended{0, program.rest()};
  ended.status = program.wait();
  return ended;
}

void expect_refused(const std::vector<std::string>& flags, const std::string& words) {
  const Ended ended = run(flags);
  EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) != 0) << ended.status;
  EXPECT_THAT(ended.output, HasSubstr(words));
}

/// All-reduces until the group fails; how long after `struck` it did, and why.
void expect_end(TestRank& rank, const std::atomic<Instant>& struck, const std::string& words,
                Duration within) {
  std::vector<float> data(1 << 18, 1.0f);
  const Collective sum = collective(OpKind::all_reduce, data.size(), data.data(), data.data());
  Result<void> outcome;
  while (outcome.ok()) outcome = rank.run(sum);
  EXPECT_EQ(outcome.error().code, ErrorCode::unavailable) << outcome.error().message;
  EXPECT_THAT(outcome.error().message, HasSubstr(words));
  EXPECT_NE(struck.load(), Instant{}) << "the group failed by itself";
  EXPECT_LT(io::now() - struck.load(), within);
}

/// Runs all-reduces in three ranks, and sends the switch `signal` when they are in the middle.
void strike(const Switch& box, int signal, Duration within) {
  std::atomic<int> at_work = 0;
  std::atomic<Instant> struck = Instant{};
  std::thread striker([&] {
    while (at_work < 3) std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(milliseconds(50));
    struck = io::now();
    box.kill(signal);
  });
  with_ranks({.ranks = 3, .switch_ip = box.address()}, [&](TestRank& rank) {
    check_all_reduce(rank, 1000);
    ++at_work;
    expect_end(rank, struck, box.address(), within);
  });
  striker.join();
}

TEST(CaisSwitch, ServesSeveralGroupsAtOnce) {
  const Switch box;
  std::vector<std::thread> groups;
  for (int i = 0; i < 3; ++i) {
    groups.emplace_back([&] {
      with_ranks({.ranks = 2, .switch_ip = box.address()},
                 [](TestRank& rank) { check_all_kinds(rank, 5000); });
    });
  }
  for (std::thread& group : groups) group.join();
}

TEST(CaisSwitch, KilledInTheMiddleIsNamedByEveryRankWithinASecond) {
  const Switch box;
  strike(box, SIGKILL, seconds(1));
}

TEST(CaisSwitch, RestartedAtTheSamePortServesNewGroups) {
  auto box = std::make_unique<Switch>();
  const std::string address = box->address(), port = box->port();
  strike(*box, SIGKILL, seconds(1));
  box.reset();
  const Switch again(port);
  EXPECT_EQ(again.address(), address);
  with_ranks({.ranks = 3, .switch_ip = address},
             [](TestRank& rank) { check_all_kinds(rank, 5000); });
}

// Found out by probes: two seconds until one goes out, two until it counts as lost.
TEST(CaisSwitch, ThatHangsIsNamed) {
  const Switch box;
  strike(box, SIGSTOP, milliseconds(4000 + 1000));
}

TEST(CaisSwitch, EndsInOrderOnSigterm) {
  Switch box;
  strike(box, SIGTERM, seconds(1));
  const int status = box.wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(CaisSwitch, EndsOnSigtermWithNobodyThere) {
  Switch box;
  box.kill(SIGTERM);
  const int status = box.wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(box.rest(), "");
}

TEST(CaisSwitch, RefusesBadFlagsInWords) {
  expect_refused({"--nonsense"}, "--nonsense");
  expect_refused({"--cores", "0"}, "--cores");
  expect_refused({"--cores", "65"}, "--cores");
  expect_refused({"--window", "7"}, "--window");
  expect_refused({"--management", "70000"}, "--management");
  expect_refused({"--listen", "no.such.host.invalid"}, "no.such.host.invalid");
  expect_refused({"--listen", "127.0.0.1", "--debug", "LOUD"}, "LOUD");
  expect_refused({"--listen", "127.0.0.1", "--udp-port", "65535", "--cores", "2"}, "--udp-port");
  expect_refused({"--listen", "203.0.113.1"}, "203.0.113.1");  // TEST-NET-3: nobody's
}

TEST(CaisSwitch, HelpsWithEveryFlag) {
  const Ended ended = run({"--help"});
  EXPECT_EQ(ended.status, 0);
  for (const char* flag :
       {"--listen", "--management", "--udp-port", "--cores", "--window", "--debug"}) {
    EXPECT_THAT(ended.output, HasSubstr(flag));
  }
}

TEST(CaisSwitch, RefusesAPortInUse) {
  const Switch first;
  expect_refused({"--listen", "127.0.0.1", "--management", first.port()}, first.address());
  MemoryRendezvous rendezvous;
  auto socket = open_udp_socket(*io::Address::parse("127.0.0.1"), {});
  ASSERT_TRUE(socket.ok());
  const std::string taken = std::to_string((*socket)->address().port());
  expect_refused(
      {"--listen", "127.0.0.1", "--management", "0", "--udp-port", taken, "--cores", "1"},
      "127.0.0.1:" + taken);
}

// Something listens there, but it is no cais-switch.
TEST(CaisSwitch, AnAddressThatDoesNotAnswerIsNamedInTime) {
  auto silent = io::Listener::open(*io::Address::parse("127.0.0.1"));
  ASSERT_TRUE(silent.ok());
  MemoryRendezvous rendezvous;
  Settings settings;
  settings.switch_ip = silent->address().to_string();
  GroupConfig group;
  group.name = "nobody";
  group.timeout = milliseconds(500);
  const Instant begin = io::now();
  const auto transport = make_udp_transport(settings, group, rendezvous);
  ASSERT_FALSE(transport.ok());
  EXPECT_THAT(transport.error().message, HasSubstr(settings.switch_ip));
  EXPECT_LT(io::now() - begin, seconds(2));
}

}  // namespace
}  // namespace cais::runtime
