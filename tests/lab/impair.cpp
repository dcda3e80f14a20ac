// cais_impair — stands in the middle of two Ethernet interfaces (veths of the network lab), hands
// every frame on to the other side, and makes the link bad: seeded loss, duplication, reordering.
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
  Direction(std::string name, int from, int to, const Rates& rates, std::uint64_t seed)
      : name_(std::move(name)), from_(from), impairment_(rates, seed, [this, to](auto frame) {
          if (::send(to, frame.data(), frame.size(), 0) < 0) ++send_failed_;
        }) {}

  Instant deadline() const { return impairment_.deadline(); }

  void relay(Instant now) {
    for (int i = 0; i < burst_max; ++i) {
      const ssize_t size = ::recv(from_, buffer_.data(), buffer_.size(), 0);
      if (size < 0) break;
      impairment_.admit(now, std::span(buffer_).first(static_cast<std::size_t>(size)));
    }
    impairment_.release(now);
  }

  void report() const {
    tpacket_stats kernel{};
    socklen_t size = sizeof kernel;
    ::getsockopt(from_, SOL_PACKET, PACKET_STATISTICS, &kernel, &size);
    std::cout << name_ << ": " << impairment_.counters().to_string() << " send_failed "
              << send_failed_ << " not_read_in_time " << kernel.tp_drops << std::endl;
  }

 private:
  std::string name_;
  int from_;
  std::uint64_t send_failed_ = 0;
  std::array<std::byte, frame_bytes_max> buffer_;
  Impairment impairment_;
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

  Direction forth(flags.a + " to " + flags.b, a->get(), b->get(), flags.rates, flags.seed);
  Direction back(flags.b + " to " + flags.a, b->get(), a->get(), flags.rates, flags.seed + 1);
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
  CLI11_PARSE(app, argc, argv);
  if (auto outcome = cais::lab::relay(flags); !outcome) {
    std::cerr << "cais_impair: " << outcome.error().message << "\n";
    return 1;
  }
  return 0;
}
