// Messages with file descriptors between processes, the shared segment that they carry, and the
// watch over processes.
#include "io/shm/local_socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "io/clock.hpp"
#include "io/shm/host_identity.hpp"
#include "io/shm/mapped_arena.hpp"
#include "io/shm/process_watch.hpp"
#include "io/shm/segment.hpp"

namespace cais::io {
namespace {

Instant soon() { return now() + std::chrono::seconds(5); }

TEST(LocalSocket, CarriesASegmentToAPeer) {
  auto listener = LocalSocket::listen();
  ASSERT_TRUE(listener.ok());
  auto client = LocalSocket::connect(listener->name());
  ASSERT_TRUE(client.ok());
  auto accepted = listener->accept(soon());
  ASSERT_TRUE(accepted.ok() && accepted->has_value());

  auto segment = Segment::create(10'000);
  ASSERT_TRUE(segment.ok());
  const std::array bytes{std::byte{1}, std::byte{2}};
  const int fd = segment->fd();
  ASSERT_TRUE(client->send(bytes, {&fd, 1}).ok());
  auto message = (*accepted)->receive(soon());
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->bytes.size(), 2u);
  ASSERT_EQ(message->fds.size(), 1u);

  auto mapped = Segment::map(std::move(message->fds[0]));
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ(mapped->bytes(), 10'000u);
  segment->data()[9'999] = std::byte{42};
  EXPECT_EQ(mapped->data()[9'999], std::byte{42});
}

TEST(LocalSocket, NobodyListens) {
  const auto client = LocalSocket::connect("cais-nobody");
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().code, ErrorCode::unavailable);
}

TEST(LocalSocket, WaitsNoLongerThanItMay) {
  auto listener = LocalSocket::listen();
  ASSERT_TRUE(listener.ok());
  const Instant begun = now();
  const auto nobody = listener->accept(begun + std::chrono::milliseconds(50));
  ASSERT_TRUE(nobody.ok());
  EXPECT_FALSE(nobody->has_value());
  EXPECT_GE(now() - begun, std::chrono::milliseconds(50));
  EXPECT_LT(now() - begun, std::chrono::seconds(2));
}

TEST(LocalSocket, ClosedPeerIsAnError) {
  auto listener = LocalSocket::listen();
  ASSERT_TRUE(listener.ok());
  { ASSERT_TRUE(LocalSocket::connect(listener->name()).ok()); }  // and closes
  auto accepted = listener->accept(soon());
  ASSERT_TRUE(accepted.ok() && accepted->has_value());
  const auto message = (*accepted)->receive(soon());
  ASSERT_FALSE(message.ok());
  EXPECT_EQ(message.error().code, ErrorCode::unavailable);
}

TEST(Segment, CannotShrinkUnderItsReaders) {
  auto segment = Segment::create(8192);
  ASSERT_TRUE(segment.ok());
  EXPECT_NE(::ftruncate(segment->fd(), 4096), 0);
}

TEST(MappedArena, IsMappedOncePerProcess) {
  auto segment = Segment::create(8192);
  ASSERT_TRUE(segment.ok());
  const auto again = [&] { return Fd(::fcntl(segment->fd(), F_DUPFD_CLOEXEC, 0)); };
  auto first = map_arena(again());
  auto second = map_arena(again());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ((*first)->data(), (*second)->data());
}

TEST(ProcessWatch, SeesADeathButNotAnIgnoredOne) {
  std::vector<Fd> pidfds;
  std::vector<pid_t> pids;
  for (int i = 0; i < 2; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) ::pause();
    pids.push_back(pid);
    pidfds.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  }
  const ProcessWatch watch(std::move(pidfds));
  EXPECT_EQ(watch.find_dead(0), std::nullopt);
  ::kill(pids[1], SIGKILL);
  while (watch.find_dead(0) == std::nullopt) std::this_thread::yield();
  EXPECT_EQ(watch.find_dead(0), std::optional<std::size_t>(1));
  EXPECT_EQ(watch.find_dead(0b10), std::nullopt);
  ::kill(pids[0], SIGKILL);
  for (const pid_t pid : pids) ::waitpid(pid, nullptr, 0);
}

TEST(HostIdentity, IsTheSameInOneProcess) {
  const auto first = host_identity();
  const auto second = host_identity();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->key, second->key);
  EXPECT_FALSE(first->name.empty());
}

}  // namespace
}  // namespace cais::io
