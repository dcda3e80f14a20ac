#include "launch.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "io/control/connection.hpp"

namespace cais::perf {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds patience{3};  // that an asked rank has to end before it is killed

struct Child {
  pid_t pid;
  int rank;
};

// A port that is free now; rank 0 will listen there.
Result<std::string> free_rendezvous() {
  const Result<io::Address> any = io::Address::parse("127.0.0.1:0");
  if (!any.ok()) return any.error();
  const Result<io::Listener> listener = io::Listener::open(*any);
  if (!listener.ok()) return listener.error();
  return listener->address().to_string();
}

// The words of the command line without --ranks and its value.
std::vector<std::string> words_for_ranks(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 0; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--ranks") {
      ++i;
    } else if (!word.starts_with("--ranks=")) {
      words.emplace_back(word);
    }
  }
  return words;
}

[[noreturn]] void become(std::vector<std::string> words, pid_t parent, const sigset_t& mask) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // also when the parent is killed without a word
  if (getppid() != parent) _exit(1);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv("/proc/self/exe", arguments.data());
  _exit(127);
}

void signal_all(const std::vector<Child>& children, int number) {
  for (const Child& child : children) kill(child.pid, number);
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  return fmt::format("failed with exit status {}", WEXITSTATUS(status));
}

struct Ended {
  int rank;
  int status;  // of waitpid
  bool wrong_data() const { return WIFEXITED(status) && WEXITSTATUS(status) == exit_wrong_data; }
};

// Takes the children that have ended out of the list.
std::vector<Ended> reap(std::vector<Child>* children) {
  std::vector<Ended> ended;
  std::erase_if(*children, [&](const Child& child) {
    int status = 0;
    if (waitpid(child.pid, &status, WNOHANG) != child.pid) return false;
    ended.push_back({child.rank, status});
    return true;
  });
  return ended;
}

// Waits for all; after a failure, asks the others to end, then makes them.
int watch(std::vector<Child> children, const sigset_t& signals) {
  bool failed = false;
  bool wrong_data = false;
  Clock::time_point kill_at = Clock::time_point::max();
  while (!children.empty()) {
    const timespec pause{0, 100'000'000};
    const int number = sigtimedwait(&signals, nullptr, &pause);
    const bool interrupted = number == SIGINT || number == SIGTERM;
    std::string failure;
    if (interrupted) failure = fmt::format("interrupted by signal {}", number);
    for (const Ended& ended : reap(&children)) {
      if (ended.wrong_data()) {
        wrong_data = true;  // the others come to the same end by themselves
      } else if (ended.status != 0 && failure.empty()) {
        failure = fmt::format("rank {} {}", ended.rank, how_it_ended(ended.status));
      }
    }
    if (!failure.empty() && !failed) {
      failed = true;
      fmt::print(stderr, "cais_perf: {}{}\n", failure,
                 children.empty() ? "" : "; the other ranks are ended");
      signal_all(children, SIGTERM);
      kill_at = Clock::now() + patience;
    }
    if (Clock::now() >= kill_at) signal_all(children, SIGKILL);
  }
  if (wrong_data) fmt::print(stderr, "cais_perf: wrong data\n");
  return failed ? 1 : (wrong_data ? exit_wrong_data : 0);
}

}  // namespace

int launch_ranks(int ranks, int argc, char** argv) {
  const Result<std::string> rendezvous = free_rendezvous();
  if (!rendezvous.ok()) {
    fmt::print(stderr, "cais_perf: {}\n", rendezvous.error().message);
    return 1;
  }
  sigset_t signals, before;
  sigemptyset(&signals);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM}) sigaddset(&signals, number);
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t self = getpid();
  std::vector<Child> children;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::string> words = words_for_ranks(argc, argv);
    for (const std::string& word :
         {std::string("--rank"), std::to_string(rank), std::string("--world"),
          std::to_string(ranks), std::string("--rendezvous"), *rendezvous}) {
      words.push_back(word);
    }
    const pid_t pid = fork();
    if (pid == 0) become(std::move(words), self, before);
    if (pid < 0) {
      fmt::print(stderr, "cais_perf: cannot start rank {}: {}\n", rank, std::strerror(errno));
      signal_all(children, SIGKILL);
      watch(std::move(children), signals);
      return 1;
    }
    children.push_back({pid, rank});
  }
  return watch(std::move(children), signals);
}

}  // namespace cais::perf
