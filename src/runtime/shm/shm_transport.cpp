#include "runtime/shm/shm_transport.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/relax.hpp"
#include "io/clock.hpp"

namespace cais::runtime::shm {
namespace {

// A waiter looks this often at whether its peers are alive.
constexpr Duration sleep_max = std::chrono::milliseconds(20);
// Once all ranks are in an op, what one waits for is work of another: it is soon done. Not for
// long: a core that yields looks busy, and the scheduler moves no rank with work over to it.
constexpr Duration work_max = std::chrono::microseconds(100);
constexpr int spins_alone = 128;  // a few microseconds
constexpr int spins_crowded = 32;
constexpr int spins_between_yields = 16;

// What shared memory moves at once has no size of its own: the descriptor gets a common one.
constexpr std::uint32_t fragment_bytes_default = 16 * 1024;

}  // namespace

ShmTransport::ShmTransport(const Settings& settings, Group group, const Tuning& tuning)
    : group_(std::move(group)),
      spin_(std::chrono::microseconds(settings.spin_us)),
      crowded_(group_.ranks() > group_.cores),
      owner_pid_(::getpid()),
      execution_(group_, tuning) {}

ShmTransport::~ShmTransport() {
  if (::getpid() != owner_pid_) return;  // a forked child is not the rank
  Progress& own = group_.memory.progress(group_.rank);
  own.left.store(1, std::memory_order_seq_cst);
  GroupMemory::ring(own.bell);
}

bool ShmTransport::supports(const Collective& collective) const {
  if (!wire::reduces(collective.kind)) return true;
  return Execution::can_reduce(collective.reduce_op, collective.dtype);
}

std::uint32_t ShmTransport::fragment_bytes() const { return fragment_bytes_default; }

void ShmTransport::start(Operation& operation) {
  operations_.push_back(&operation);
  if (operations_.size() == 1 && !group_.memory.failed()) execution_.begin(operation);
}

bool ShmTransport::progress() {
  bool moved = false;
  while (!operations_.empty()) {
    if (group_.memory.failed()) {
      end_all(group_.memory.failure());
      return true;
    }
    if (!execution_.advance()) {
      if (!group_.memory.failed()) return moved;
      continue;
    }
    Operation* done = operations_.front();
    operations_.pop_front();
    moved = true;
    done->finish({});
    if (!operations_.empty()) execution_.begin(*operations_.front());
  }
  return moved;
}

void ShmTransport::end_all(const Error& error) {
  for (Operation* operation : operations_) operation->finish(error);
  operations_.clear();
}

void ShmTransport::wait(Duration limit) {
  if (operations_.empty() || group_.memory.failed()) return;
  const Blocked& blocked = execution_.blocked();
  if (spin_or_yield(blocked)) return;
  group_.memory.sleep(blocked, std::min(limit, sleep_max));
  if (!blocked.over()) look_at_peers(blocked);
}

/// Whether what is waited for came about without sleeping. Spins while the rank that is waited for
/// may be running elsewhere, and lets others run when it cannot be: it was last seen on our core.
bool ShmTransport::spin_or_yield(const Blocked& blocked) const {
  Progress& own = group_.memory.progress(group_.rank);
  const auto core = static_cast<std::uint32_t>(::sched_getcpu() + 1);
  if (own.core.load(std::memory_order_relaxed) != core) {
    own.core.store(core, std::memory_order_relaxed);
  }
  const bool elsewhere =
      blocked.by == group_.ranks() ||
      group_.memory.progress(blocked.by).core.load(std::memory_order_relaxed) != core;
  for (int spin = elsewhere ? (crowded_ ? spins_crowded : spins_alone) : 0; spin > 0; --spin) {
    if (blocked.over()) return true;
    relax();
  }
  const Instant end = io::now() + (execution_.all_are_here() ? std::max(spin_, work_max) : spin_);
  do {
    if (blocked.over() || group_.memory.failed()) return true;
    ::sched_yield();
    for (int spin = crowded_ ? 0 : spins_between_yields; spin > 0 && !blocked.over(); --spin) {
      relax();
    }
  } while (io::now() < end);
  return blocked.over();
}

/// Fails the group when a rank has died, or has left without what we wait for.
void ShmTransport::look_at_peers(const Blocked& blocked) {
  std::uint64_t left = 0;
  for (std::size_t rank = 0; rank < group_.ranks(); ++rank) {
    const auto& progress = group_.memory.progress(rank);
    if (progress.left.load(std::memory_order_acquire) != 0) left |= std::uint64_t{1} << rank;
  }
  if (blocked.by < group_.ranks() && (left >> blocked.by & 1) != 0 && !blocked.over()) {
    return abort(lost(blocked.by, "left the group"));
  }
  if (const auto dead = group_.watch.find_dead(left)) abort(lost(*dead, "died"));
}

Error ShmTransport::lost(std::size_t rank, const char* how) const {
  const Peer& peer = group_.peers[rank];
  const Operation& oldest = operations_.front()->callers();
  return Error{
      ErrorCode::rank_lost,
      fmt::format("rank {} (pid {} on host {}) {} while rank {} waited in collective {}, {}",
                  peer.outer_rank, peer.pid, peer.host, how, group_.peers[group_.rank].outer_rank,
                  oldest.op_seq, wire::to_string(oldest.descriptor))};
}

void ShmTransport::abort(const Error& error) { group_.memory.fail(error); }

std::string ShmTransport::waiting_for() const {
  if (operations_.empty()) return {};
  std::string ranks;
  const std::uint64_t missing = execution_.missing_ranks();
  for (std::size_t rank = 0; rank < group_.ranks(); ++rank) {
    if ((missing >> rank & 1) == 0) continue;
    const Peer& peer = group_.peers[rank];
    ranks += fmt::format("{}{} (pid {})", ranks.empty() ? "" : ", ", peer.outer_rank, peer.pid);
  }
  const Operation& oldest = operations_.front()->callers();
  return fmt::format("collective {}, {}: {}", oldest.op_seq, wire::to_string(oldest.descriptor),
                     ranks.empty() ? "all ranks are in it, but not done"
                                   : "rank(s) " + ranks + " have not arrived");
}

}  // namespace cais::runtime::shm
