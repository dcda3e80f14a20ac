#include "tests/runtime/processes.hpp"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace cais::runtime::testing {
namespace {

/// A rendezvous in a directory: a file per key.
class DirectoryRendezvous final : public Rendezvous {
 public:
  explicit DirectoryRendezvous(std::string directory) : directory_(std::move(directory)) {}

  Result<void> set(std::string_view key, std::string_view value) override {
    const std::string path = path_of(key);
    std::ofstream(path + ".new") << value;
    std::filesystem::rename(path + ".new", path);
    return {};
  }

  Result<std::string> get(std::string_view key, Duration timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (!std::filesystem::exists(path_of(key))) {
      if (std::chrono::steady_clock::now() >= deadline) {
        return Error{ErrorCode::timed_out, "nobody set " + std::string(key)};
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::ifstream file(path_of(key));
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

 private:
  std::string path_of(std::string_view key) const {
    std::string name(key);
    std::replace(name.begin(), name.end(), '/', '_');
    return directory_ + "/" + name;
  }
  std::string directory_;
};

}  // namespace

RankProcesses::RankProcesses(std::uint16_t ranks, Duration timeout,
                             const std::function<int(Communicator&)>& body) {
  char pattern[] = "/tmp/cais_test_XXXXXX";
  directory_ = ::mkdtemp(pattern);
  for (std::uint16_t rank = 0; rank < ranks; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      DirectoryRendezvous rendezvous(directory_);
      const GroupConfig config{"test", rank, ranks, timeout};
      auto made = Communicator::create(Settings(), config, rendezvous);
      if (!made) ::_exit(100);
      const int code = body(**made);
      made->reset();
      ::_exit(code);
    }
    pids_.push_back(pid);
  }
}

RankProcesses::~RankProcesses() {
  for (const pid_t pid : pids_) {
    if (pid == 0) continue;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  std::filesystem::remove_all(directory_);
}

int RankProcesses::wait(std::size_t rank, Duration limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (::waitpid(pids_[rank], &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= deadline) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  pids_[rank] = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace cais::runtime::testing
