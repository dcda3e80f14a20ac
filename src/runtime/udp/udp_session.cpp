#include "runtime/udp/udp_session.hpp"

#include <algorithm>
#include <array>

#include "io/clock.hpp"
#include "runtime/udp/members.hpp"

namespace cais::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration linger_max = seconds(5);
constexpr Duration idle_wait = seconds(10);
// How long the thread leaves the sockets alone after it saw somebody else drive. A peer that needs
// a repeat waits no longer than that for it.
constexpr Duration nap_min = milliseconds(1);
constexpr Duration nap_max = milliseconds(4);
constexpr std::uint32_t turns_between_management = 64;

}  // namespace

UdpSession::UdpSession(UdpSessionConfig config, std::unique_ptr<Endpoint> endpoint,
                       std::unique_ptr<Management> management, io::Waker waker)
    : config_(std::move(config)),
      endpoint_(std::move(endpoint)),
      management_(std::move(management)),
      left_after_(config_.ranks),
      waker_(std::move(waker)),
      thread_([this] { serve(); }) {}

UdpSession::~UdpSession() {
  stopping_ = true;
  waker_.wake();
  thread_.join();
  linger();
}

bool UdpSession::supports(const Collective& collective) const {
  return collective.reduce_op == ReduceOp::none || !is_opaque(collective.dtype);
}

void UdpSession::start(Operation& operation) {
  const std::scoped_lock lock(mutex_);
  if (failed_) return operation.finish(*failed_);
  waiting_.push_back({started_++, &operation});
  const DescriptorHash hash = operation.descriptor_hash;
  if (described_.try_emplace(hash.value, Known::asked).second) {
    management_->describe(operation.descriptor, hash, operation.callers().descriptor);
    take_management_events();
  }
  fail_if_peers_left();
  submit_described();
}

bool UdpSession::progress() {
  drives_.fetch_add(1, std::memory_order_relaxed);
  const std::scoped_lock lock(mutex_);
  return turn();
}

void UdpSession::wait(Duration limit) {
  drivers_waiting_.fetch_add(1, std::memory_order_relaxed);
  std::array<pollfd, 3> fds;
  {
    const std::scoped_lock lock(mutex_);
    limit = time_to_wait(limit);
    fds = {pollfd{waker_.fd(), POLLIN, 0}, pollfd{management_->fd(), POLLIN, 0},
           endpoint_ ? endpoint_->waits_for() : pollfd{-1, 0, 0}};
  }
  const bool spins = config_.spin > Duration(0) && fds[2].fd >= 0;
  if (!spins || !io::spin_for(fds[2], std::min(config_.spin, limit))) io::wait_any(fds, limit);
  if (fds[1].revents != 0) management_due_.store(true, std::memory_order_relaxed);
  drives_.fetch_add(1, std::memory_order_relaxed);
  drivers_waiting_.fetch_sub(1, std::memory_order_relaxed);
}

void UdpSession::abort(const Error& error) {
  const std::scoped_lock lock(mutex_);
  fail_for_all(error);
  woken_ = true;
  waker_.wake();
}

Duration UdpSession::time_to_wait(Duration limit) const {
  if (!endpoint_ || endpoint_->deadline() == never) return limit;
  return std::clamp(endpoint_->deadline() - io::now(), Duration(0), limit);
}

bool UdpSession::turn() {
  bool moved = false;
  if (woken_.exchange(false)) waker_.clear();
  if (management_due_.exchange(false) || ++turns_ % turns_between_management == 0) {
    management_->progress();
  }
  moved |= take_management_events();
  if (!endpoint_) return moved;
  submit_described();
  moved |= endpoint_->progress();
  submit_described();
  take_packet_events();
  return moved;
}

void UdpSession::submit_described() {
  while (endpoint_ && endpoint_->ready() && !waiting_.empty()) {
    const UnderWay next = waiting_.front();
    if (described_.at(next.operation->descriptor_hash.value) != Known::yes) return;
    waiting_.pop_front();
    under_way_.push_back(next);
    const Collective& collective = next.operation->collective;
    const void* send = collective.kind == OpKind::broadcast ? collective.recv : collective.send;
    endpoint_->submit(agent::Submit{
        .op = next.number,
        .descriptor = next.operation->descriptor_hash,
        .plan = next.operation->plan,
        .send = static_cast<const std::byte*>(send),
        .recv = static_cast<std::byte*>(collective.recv),
    });
  }
}

bool UdpSession::take_management_events() {
  bool moved = false;
  ManagementEvent event;
  while (management_->poll_event(event)) {
    moved = true;
    if (const auto* described = std::get_if<Described>(&event)) {
      described_[described->descriptor.value] = Known::yes;
    } else if (const auto* left = std::get_if<Left>(&event)) {
      if (left->rank.value < left_after_.size()) left_after_[left->rank.value] = left->ops;
      fail_if_peers_left();
    } else if (const auto* gone = std::get_if<Gone>(&event)) {
      fail_if_needed(gone->rank);
    } else if (const auto* refused = std::get_if<Refused>(&event)) {
      fail(Error{ErrorCode::mismatch,
                 wire::explain_mismatch(refused->first_descriptor, outer_rank(refused->first),
                                        refused->second_descriptor, outer_rank(refused->second))});
    } else if (const auto* ended = std::get_if<Ended>(&event)) {
      fail(ended->error);
    }
  }
  return moved;
}

Rank UdpSession::outer_rank(Rank rank) const {
  return rank.value < config_.outer_ranks.size() ? config_.outer_ranks[rank.value] : rank;
}

void UdpSession::take_packet_events() {
  agent::Event event;
  while (endpoint_ && endpoint_->poll_event(event)) {
    if (const auto* done = std::get_if<agent::Done>(&event)) {
      finish(done->op);
    } else if (const auto* bad = std::get_if<agent::Mismatched>(&event)) {
      management_->report({bad->first, bad->second, bad->first_descriptor, bad->second_descriptor});
      take_management_events();
    } else if (const auto* denied = std::get_if<agent::NoSession>(&event)) {
      // Only the management can end the session: whoever saw the question can have answered it.
      const std::uint64_t server = std::uint64_t{1} << endpoint_->server_of(denied->lane);
      denied_by_ |= server;
      config_.log.warn(telemetry::Subsystem::udp,
                       "{} says that it has no such session; was it started anew?",
                       names_in(config_.server_names, server));
    }
  }
  switching::Event found;
  while (endpoint_ && endpoint_->poll_switch_event(found)) {
    if (const auto* bad = std::get_if<switching::MismatchEvent>(&found)) {
      management_->report({bad->first, bad->second, bad->first_descriptor, bad->second_descriptor});
      take_management_events();
    } else if (const auto* violation = std::get_if<switching::ViolationEvent>(&found)) {
      config_.log.warn(telemetry::Subsystem::udp, "{} broke the window of lane {} at seq {}",
                       config_.names[violation->rank.value], violation->lane.value,
                       violation->seq.value);
    }
  }
}

void UdpSession::finish(std::uint64_t number) {
  const auto found = std::find_if(under_way_.begin(), under_way_.end(),
                                  [&](const UnderWay& one) { return one.number == number; });
  CAIS_CHECK(found != under_way_.end());
  Operation* operation = found->operation;
  under_way_.erase(found);
  operation->finish({});
}

// The agent points into the tensors: it must be gone before their owners hear of the end.
void UdpSession::fail(const Error& error) {
  if (failed_) return;
  failed_ = error;
  config_.log.info(telemetry::Subsystem::udp, "failed after {} collectives: {}; {}", started_,
                   error.message, endpoint_->summary());
  endpoint_.reset();
  for (std::deque<UnderWay>* queue : {&under_way_, &waiting_}) {
    std::deque<UnderWay> ending;
    ending.swap(*queue);
    for (const UnderWay& one : ending) one.operation->finish(error);
  }
}

/// Ends the session at all ranks; if it has ended here, they have been told.
void UdpSession::fail_for_all(const Error& error) {
  if (!failed_) management_->abort(error);
  fail(error);
}

/// Who leaves goes on answering until all have left, or for linger_max: what this rank lacks now,
/// nobody can repeat any more.
void UdpSession::fail_if_needed(Rank gone) {
  if (waiting_.empty() && under_way_.empty()) return;
  const Error error{ErrorCode::rank_lost,
                    config_.names[gone.value] +
                        " left the group in order, and is gone before this rank had all that it "
                        "needs of their last collective: too many packets are lost on the way"};
  fail_for_all(error);
}

void UdpSession::fail_if_peers_left() {
  if (started_ == 0 || (waiting_.empty() && under_way_.empty())) return;
  for (std::size_t rank = 0; rank < left_after_.size(); ++rank) {
    const std::optional<std::uint64_t>& ops = left_after_[rank];
    if (!ops || *ops >= started_) continue;
    const Error error{ErrorCode::rank_lost,
                      config_.names[rank] + " left the group in order after " +
                          std::to_string(*ops) + " collectives, but this rank has started " +
                          std::to_string(started_) + ": all ranks must call the same ones"};
    return fail_for_all(error);
  }
}

bool UdpSession::driven() {
  const std::uint64_t drives = drives_.load(std::memory_order_relaxed);
  const bool since = drives != drives_seen_;
  drives_seen_ = drives;
  return since || drivers_waiting_.load(std::memory_order_relaxed) > 0;
}

void UdpSession::serve() {
  Duration nap = nap_min;
  while (!stopping_) {
    if (driven()) {
      pollfd stop{waker_.fd(), POLLIN, 0};
      io::wait_any({&stop, 1}, nap);
      nap = std::min(2 * nap, nap_max);
      continue;
    }
    nap = nap_min;
    std::array<pollfd, 3> fds;
    Duration limit = idle_wait;
    {
      const std::scoped_lock lock(mutex_);
      if (turn()) continue;
      limit = time_to_wait(limit);
      fds = {pollfd{waker_.fd(), POLLIN, 0}, pollfd{management_->fd(), POLLIN, 0},
             endpoint_ ? endpoint_->waits_for() : pollfd{-1, 0, 0}};
    }
    io::wait_any(fds, limit);
    if (fds[1].revents != 0) management_due_.store(true, std::memory_order_relaxed);
  }
}

void UdpSession::linger() {
  const std::scoped_lock lock(mutex_);
  if (failed_) return;
  config_.log.info(telemetry::Subsystem::udp, "leaving after {} collectives; {}", started_,
                   endpoint_->summary());
  management_->leave(started_);
  const Instant deadline = io::now() + linger_max;
  while (!failed_ && !management_->alone()) {
    const Duration left = deadline - io::now();
    if (left <= Duration(0)) {
      config_.log.warn(telemetry::Subsystem::udp, "left the group before all peers had");
      return;
    }
    management_due_ = true;
    if (turn() || failed_) continue;
    std::array<pollfd, 2> fds{pollfd{management_->fd(), POLLIN, 0}, endpoint_->waits_for()};
    io::wait_any(fds, time_to_wait(left));
  }
}

}  // namespace cais::runtime
