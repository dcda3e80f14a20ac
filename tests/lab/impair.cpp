// cais_impair — stands in the middle of two Ethernet interfaces (veths of the network lab), hands
// every frame on to the other side, and makes the link bad: seeded loss, duplication, reordering.
// It can also send what somebody in the middle would who means harm (hostility.hpp).
//
// Prints "ready" when it relays, and what it did per direction when it is ended by SIGTERM or
// SIGINT. Offloads of the veths must be off (bench/lab/lab.sh does it), or whole trains of segments
// would be hit as one.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <string>

#include "io/clock.hpp"
#include "io/fd.hpp"
#include "io/poller.hpp"
#include "tests/lab/hostility.hpp"
#include "tests/lab/impairment.hpp"

namespace cais::lab {
namespace {

constexpr int socket_buffer_bytes = 16 << 20;
constexpr std::size_t frame_bytes_max = 65'536;
constexpr int burst_max = 256;  // frames from one side before the other gets its turn

struct Flags {
  std::string a, b;
  Rates rates;
  std::uint64_t seed = 1;
  std::uint64_t hostile = 0;       // frames per second and direction
  std::uint16_t hostile_port = 0;  // where they go; 0: where real ones go
};

Result<io::Fd> open_side(const std::string& interface) {
  io::Fd fd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL)));
  if (!fd) return io::system_error("cannot open a packet socket (root is needed)");
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
  if (address.sll_ifindex == 0) return io::system_error("no interface " + interface);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return io::system_error("cannot bind to " + interface);
  }
  packet_mreq promiscuous{};
  promiscuous.mr_ifindex = address.sll_ifindex;
  promiscuous.mr_type = PACKET_MR_PROMISC;
  const int on = 1;
  if (::setsockopt(fd.get(), SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) !=
          0 ||
      ::setsockopt(fd.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0 ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &socket_buffer_bytes,
                   sizeof socket_buffer_bytes) != 0 ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUFFORCE, &socket_buffer_bytes,
                   sizeof socket_buffer_bytes) != 0) {
    return io::system_error("cannot set up the packet socket of " + interface);
  }
  return fd;
}

/// One direction: frames read from one side, sent to the other.
class Direction {
 public:
  Direction(std::string name, int from, int to, const Flags& flags, std::uint64_t seed)
      : name_(std::move(name)),
        from_(from),
        to_(to),
        impairment_(flags.rates, seed, [this](auto frame) { send(frame); }),
        hostility_(seed, flags.hostile_port),
        hostile_per_second_(flags.hostile),
        hostile_from_(io::now()) {}

  Instant deadline() const {
    return std::min(impairment_.deadline(),
                    hostile_per_second_ == 0 ? never : hostile_from_ + hostile_step);
  }

  void relay(Instant now) {
    for (int i = 0; i < burst_max; ++i) {
      const ssize_t size = ::recv(from_, buffer_.data(), buffer_.size(), 0);
      if (size < 0) break;
      const auto frame = std::span(buffer_).first(static_cast<std::size_t>(size));
      if (hostile_per_second_ != 0) hostility_.learn(frame);
      impairment_.admit(now, frame);
    }
    impairment_.release(now);
    harm(now);
  }

  void report() const {
    tpacket_stats kernel{};
    socklen_t size = sizeof kernel;
    ::getsockopt(from_, SOL_PACKET, PACKET_STATISTICS, &kernel, &size);
    std::cout << name_ << ": " << impairment_.counters().to_string() << " send_failed "
              << send_failed_ << " not_read_in_time " << kernel.tp_drops << " "
              << hostility_.to_string() << std::endl;
  }

 private:
  void send(std::span<const std::byte> frame) {
    if (::send(to_, frame.data(), frame.size(), 0) < 0) ++send_failed_;
  }

  /// As many as are due since the last time. Time in which this process did not run is let go.
  void harm(Instant now) {
    if (hostile_per_second_ == 0 || now < hostile_from_ + hostile_step) return;
    const Duration passed = std::min<Duration>(now - hostile_from_, 10 * hostile_step);
    hostile_from_ = now;
    const auto due =
        static_cast<std::uint64_t>(passed.count()) * hostile_per_second_ / 1'000'000'000;
    for (std::uint64_t i = 0; i < due; ++i) {
      const auto frame = hostility_.next();
      if (!frame) return;
      send(*frame);
    }
  }

  static constexpr Duration hostile_step = std::chrono::milliseconds(1);

  std::string name_;
  int from_;
  int to_;
  std::uint64_t send_failed_ = 0;
  std::array<std::byte, frame_bytes_max> buffer_;
  Impairment impairment_;
  Hostility hostility_;
  std::uint64_t hostile_per_second_;
  Instant hostile_from_;
};

Result<void> relay(const Flags& flags) {
  auto a = open_side(flags.a);
  if (!a) return std::move(a).error();
  auto b = open_side(flags.b);
  if (!b) return std::move(b).error();

  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  const io::Fd ended(::signalfd(-1, &ends, SFD_CLOEXEC));
  if (!ended) return io::system_error("cannot wait for signals");

  Direction forth(flags.a + " to " + flags.b, a->get(), b->get(), flags, flags.seed);
  Direction back(flags.b + " to " + flags.a, b->get(), a->get(), flags, flags.seed + 1);
  std::cout << "ready" << std::endl;
  std::array<pollfd, 3> fds{
      {{a->get(), POLLIN, 0}, {b->get(), POLLIN, 0}, {ended.get(), POLLIN, 0}}};
  while ((fds[2].revents & POLLIN) == 0) {
    const Instant deadline = std::min(forth.deadline(), back.deadline());
    io::wait_any(fds,
                 deadline == never ? Duration(-1) : std::max(Duration(0), deadline - io::now()));
    forth.relay(io::now());
    back.relay(io::now());
  }
  forth.report();
  back.report();
  return {};
}

}  // namespace
}  // namespace cais::lab

int main(int argc, char** argv) {
  cais::lab::Flags flags;
  CLI::App app("Relays between two Ethernet interfaces and makes the link bad, both ways.");
  app.add_option("a", flags.a, "one interface")->required();
  app.add_option("b", flags.b, "the other interface")->required();
  const CLI::Range share(0.0, 1.0);
  app.add_option("--loss", flags.rates.loss, "share of frames lost")->check(share);
  app.add_option("--duplicate", flags.rates.duplicate, "share of frames doubled")->check(share);
  app.add_option("--reorder", flags.rates.reorder, "share of frames overtaken")->check(share);
  app.add_option("--seed", flags.seed, "the same seed treats the n-th frame in the same way");
  app.add_option("--hostile", flags.hostile, "hostile frames per second and direction")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--hostile-port", flags.hostile_port,
                 "sends them all to this UDP port (where nobody listens, to know what making them "
                 "costs)");
  CLI11_PARSE(app, argc, argv);
  if (auto outcome = cais::lab::relay(flags); !outcome) {
    std::cerr << "cais_impair: " << outcome.error().message << "\n";
    return 1;
  }
  return 0;
}
