#include "runtime/shm/group.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "io/clock.hpp"
#include "io/shm/arena.hpp"
#include "io/shm/host_identity.hpp"
#include "io/shm/local_socket.hpp"
#include "io/shm/mapped_arena.hpp"

namespace cais::runtime::shm {
namespace {

constexpr Duration hello_timeout = std::chrono::seconds(10);  // from connecting to the hello
constexpr std::uint32_t protocol_magic = 0x43534831;          // changes with every layout

/// A rank to rank 0; with its pidfd and, where it has one, its arena.
struct Hello {
  std::uint32_t magic;
  std::uint16_t rank;
  std::uint16_t has_arena;
  std::int32_t pid;
  std::uint32_t reserved;
  std::array<char, 64> host;
  cpu_set_t cores;  // that it may run on
};

/// Rank 0 to each rank, before one Hello per rank; with the segment, all pidfds, all arenas.
struct Welcome {
  std::uint32_t magic;
  GroupShape shape;
};

static_assert(sizeof(Welcome) + ranks_max * sizeof(Hello) <= io::local_message_bytes_max);
static_assert(1 + 2 * ranks_max <= io::local_message_fds_max);

/// A rank's Hello and the descriptors that came with it.
struct Arrived {
  Hello hello{};
  io::Fd pidfd;
  io::Fd arena;
};

Result<Hello> own_hello(const GroupConfig& config, bool has_arena) {
  Hello hello{};
  hello.magic = protocol_magic;
  hello.rank = config.rank;
  hello.has_arena = has_arena ? 1 : 0;
  hello.pid = ::getpid();
  auto identity = io::host_identity();
  if (!identity) return identity.error();
  identity->name.copy(hello.host.data(), hello.host.size() - 1);
  if (::sched_getaffinity(0, sizeof(hello.cores), &hello.cores) != 0) CPU_SET(0, &hello.cores);
  return hello;
}

int own_arena_fd(const Settings& settings) {
  io::Arena* arena = io::process_arena(settings.arena_bytes_max);
  return arena == nullptr ? -1 : arena->fd();
}

std::string key_of(const GroupConfig& config) { return "cais/shm/" + config.name + "/socket"; }

Error not_arrived(const GroupConfig& config, const std::vector<std::optional<Arrived>>& arrived) {
  std::string missing;
  for (std::size_t rank = 1; rank < arrived.size(); ++rank) {
    if (arrived[rank]) continue;
    missing += (missing.empty() ? "" : ", ") + std::to_string(config.outer_rank(rank));
  }
  return Error{ErrorCode::timed_out,
               fmt::format("group \"{}\": rank(s) {} of {} did not come within {} s", config.name,
                           missing, config.ranks, config.timeout.count() / 1'000'000'000)};
}

/// Reads a Hello; nothing when what connected is no rank of this group.
std::optional<Arrived> receive_hello(io::LocalSocket& socket, const GroupConfig& config) {
  auto message = socket.receive(io::now() + hello_timeout);
  if (!message || message->bytes.size() != sizeof(Hello)) return std::nullopt;
  Arrived arrived;
  std::memcpy(&arrived.hello, message->bytes.data(), sizeof(Hello));
  const Hello& hello = arrived.hello;
  if (hello.magic != protocol_magic || hello.rank == 0 || hello.rank >= config.ranks ||
      message->fds.size() != 1u + hello.has_arena) {
    return std::nullopt;
  }
  arrived.hello.host.back() = '\0';
  arrived.pidfd = std::move(message->fds[0]);
  if (hello.has_arena != 0) arrived.arena = std::move(message->fds[1]);
  return arrived;
}

/// The group that `shape`, `segment` and what all ranks said make.
Result<Group> assemble(const GroupConfig& config, const GroupShape& shape, io::Segment segment,
                       std::vector<Arrived> all) {
  if (segment.bytes() < GroupMemory::bytes_needed(shape)) {
    return Error{ErrorCode::malformed, "the segment of rank 0 is too small for its group"};
  }
  cpu_set_t cores;
  CPU_ZERO(&cores);
  std::vector<Peer> peers;
  std::vector<io::Fd> pidfds;
  for (Arrived& arrived : all) {
    CPU_OR(&cores, &cores, &arrived.hello.cores);
    Peer peer{config.outer_rank(peers.size()), arrived.hello.pid, arrived.hello.host.data(),
              nullptr};
    if (arrived.arena) {
      auto arena = io::map_arena(std::move(arrived.arena));
      if (!arena) return arena.error();
      peer.arena = std::move(*arena);
    }
    peers.push_back(std::move(peer));
    pidfds.push_back(std::move(arrived.pidfd));
  }
  return Group{config.rank, GroupMemory(std::move(segment), shape), std::move(peers),
               io::ProcessWatch(std::move(pidfds)), static_cast<std::uint32_t>(CPU_COUNT(&cores))};
}

Result<void> send_welcome(io::LocalSocket& socket, const GroupShape& shape,
                          const io::Segment& segment, const std::vector<Arrived>& all) {
  const Welcome welcome{protocol_magic, shape};
  std::vector<std::byte> bytes(sizeof(Welcome) + all.size() * sizeof(Hello));
  std::memcpy(bytes.data(), &welcome, sizeof(Welcome));
  std::vector<int> fds{segment.fd()};
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    std::memcpy(bytes.data() + sizeof(Welcome) + rank * sizeof(Hello), &all[rank].hello,
                sizeof(Hello));
    fds.push_back(all[rank].pidfd.get());
  }
  for (const Arrived& arrived : all) {
    if (arrived.arena) fds.push_back(arrived.arena.get());
  }
  return socket.send(bytes, fds);
}

Result<Arrived> own_arrival(const Settings& settings, const GroupConfig& config) {
  const int arena = own_arena_fd(settings);
  auto hello = own_hello(config, arena >= 0);
  if (!hello) return hello.error();
  auto pidfd = io::own_pidfd();
  if (!pidfd) return pidfd.error();
  Arrived arrived{*hello, std::move(*pidfd), io::Fd()};
  if (arena >= 0) {
    arrived.arena = io::Fd(::fcntl(arena, F_DUPFD_CLOEXEC, 0));
    if (!arrived.arena) return io::system_error("cannot duplicate the arena's descriptor");
  }
  return arrived;
}

Result<Group> lead(const Settings& settings, const GroupConfig& config, Rendezvous& rendezvous) {
  const Instant deadline = io::now() + config.timeout;
  auto own = own_arrival(settings, config);
  if (!own) return own.error();
  auto listener = io::LocalSocket::listen();
  if (!listener) return listener.error();
  if (auto set = rendezvous.set(key_of(config), listener->name()); !set) return set.error();

  std::vector<std::optional<Arrived>> arrived(config.ranks);
  std::vector<io::LocalSocket> sockets(config.ranks);
  arrived[0] = std::move(*own);
  for (std::size_t missing = config.ranks - 1u; missing > 0;) {
    auto socket = listener->accept(deadline);
    if (!socket) return socket.error();
    if (!*socket) return not_arrived(config, arrived);
    auto hello = receive_hello(**socket, config);
    if (!hello || arrived[hello->hello.rank]) continue;  // a stranger
    const std::uint16_t rank = hello->hello.rank;
    arrived[rank] = std::move(*hello);
    sockets[rank] = std::move(**socket);
    --missing;
  }

  const std::size_t staging = staging_buffers_min *
                              std::max<std::size_t>(settings.shm_staging_bytes, page_bytes) /
                              page_bytes * page_bytes;
  const GroupShape shape{config.ranks, static_cast<std::uint32_t>(staging)};
  auto segment = io::Segment::create(GroupMemory::bytes_needed(shape));
  if (!segment) return segment.error();
  std::vector<Arrived> all;
  all.reserve(arrived.size());
  for (auto& rank : arrived) all.push_back(std::move(*rank));
  for (std::size_t rank = 1; rank < sockets.size(); ++rank) {
    // A rank that died meanwhile is seen through its pidfd, by all, at the first collective.
    (void)send_welcome(sockets[rank], shape, *segment, all);
  }
  return assemble(config, shape, std::move(*segment), std::move(all));
}

/// Takes rank 0's message apart.
Result<Group> read_welcome(io::LocalMessage message, const GroupConfig& config) {
  const Error malformed{ErrorCode::malformed,
                        fmt::format("group \"{}\": rank {} is of another version of CAIS, or has "
                                    "another number of ranks than {}",
                                    config.name, config.outer_rank(0), config.ranks)};
  Welcome welcome{};
  if (message.bytes.size() != sizeof(Welcome) + config.ranks * sizeof(Hello)) return malformed;
  std::memcpy(&welcome, message.bytes.data(), sizeof(Welcome));
  if (welcome.magic != protocol_magic || welcome.shape.ranks != config.ranks) return malformed;

  std::vector<Arrived> all(config.ranks);
  std::size_t next_arena = 1u + config.ranks;
  if (message.fds.size() < next_arena) return malformed;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    std::memcpy(&all[rank].hello, message.bytes.data() + sizeof(Welcome) + rank * sizeof(Hello),
                sizeof(Hello));
    all[rank].hello.host.back() = '\0';
    all[rank].pidfd = std::move(message.fds[1 + rank]);
    if (all[rank].hello.has_arena == 0) continue;
    if (next_arena == message.fds.size()) return malformed;
    all[rank].arena = std::move(message.fds[next_arena++]);
  }
  auto segment = io::Segment::map(std::move(message.fds[0]));
  if (!segment) return segment.error();
  return assemble(config, welcome.shape, std::move(*segment), std::move(all));
}

Result<Group> join(const Settings& settings, const GroupConfig& config, Rendezvous& rendezvous) {
  const Instant deadline = io::now() + config.timeout;
  auto name = rendezvous.get(key_of(config), config.timeout);
  if (!name) return name.error();
  auto socket = io::LocalSocket::connect(*name);
  if (!socket) {
    return Error{ErrorCode::unavailable,
                 fmt::format("group \"{}\": rank {} is gone ({})", config.name,
                             config.outer_rank(0), socket.error().message)};
  }
  auto own = own_arrival(settings, config);
  if (!own) return own.error();
  std::vector<int> fds{own->pidfd.get()};
  if (own->arena) fds.push_back(own->arena.get());
  if (auto sent = socket->send(std::as_bytes(std::span(&own->hello, 1)), fds); !sent) {
    return sent.error();
  }
  auto message = socket->receive(deadline);
  if (!message && message.error().code == ErrorCode::timed_out) {
    return Error{ErrorCode::timed_out,
                 fmt::format("group \"{}\": not all of its {} ranks came within {} s; rank {} says "
                             "which",
                             config.name, config.ranks, config.timeout.count() / 1'000'000'000,
                             config.outer_rank(0))};
  }
  if (!message) {
    return Error{ErrorCode::unavailable,
                 fmt::format("group \"{}\": rank {} gave up or died before all ranks were there",
                             config.name, config.outer_rank(0))};
  }
  return read_welcome(std::move(*message), config);
}

}  // namespace

Result<Group> connect_group(const Settings& settings, const GroupConfig& config,
                            Rendezvous& rendezvous) {
  return config.rank == 0 ? lead(settings, config, rendezvous) : join(settings, config, rendezvous);
}

}  // namespace cais::runtime::shm
