#include "runtime/group_communicator.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "io/clock.hpp"

namespace cais::runtime {
namespace {

constexpr Duration wait_slice = std::chrono::milliseconds(5);  // until a new waiter is noticed
constexpr Duration shutdown_timeout = std::chrono::seconds(5);

}  // namespace

GroupCommunicator::GroupCommunicator(const Settings& settings, const GroupConfig& config,
                                     std::unique_ptr<Transport> transport)
    : config_(config),
      transport_name_(transport->name()),
      owner_pid_(::getpid()),
      transport_(std::move(transport)),
      plans_(traits_of(settings, config, *transport_)) {}

GroupCommunicator::~GroupCommunicator() {
  if (::getpid() != owner_pid_) {
    // A forked child: the progress thread and the peers are the parent's.
    if (progress_thread_.joinable()) progress_thread_.detach();
    return;
  }
  stop_progress_thread();
  Drive drive(drive_);
  take_queued();
  // Peers that are still busy with what we have finished must not be disturbed.
  if (!under_way_.empty()) abort("the communicator was destroyed with collectives under way");
  if (transport_ != nullptr) transport_->progress();
  call_back_finished(drive);
}

bool GroupCommunicator::supports(const Collective& collective) const {
  const std::lock_guard lock(queue_mutex_);
  return transport_ == nullptr || transport_->supports(collective);  // `start` says that it is shut
}

Result<void> GroupCommunicator::check_pointers(const Collective& collective,
                                               const nir::Plan& plan) const {
  if (plan.unit_bytes == 0) return {};
  const bool from_recv = plan.combine == nir::Combine::route && plan.deliver == nir::Deliver::all;
  const Rank rank(config_.rank);
  const char* missing = nullptr;
  if (plan.contributes_payload(rank) && !from_recv && collective.send == nullptr) missing = "send";
  const bool receives =
      plan.receives_payload(rank, plan.units == 1 ? 0 : std::uint32_t{rank.value});
  if ((receives || from_recv) && collective.recv == nullptr) missing = "recv";
  if (missing == nullptr) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} needs `{}` at rank {}, and it is null", to_string(collective.kind),
                           missing, config_.rank)};
}

/// Fills in what the collective's descriptor and plan are; with queue_mutex_ held.
Result<void> GroupCommunicator::prepare(const Collective& collective, Operation& operation) {
  if (closed_) return Error{ErrorCode::aborted, "group \"" + config_.name + "\" was shut down"};
  auto known = plans_.find(collective);
  if (!known) return known.error();
  const KnownCollective& found = **known;
  if (!transport_->supports(collective)) {
    return Error{ErrorCode::unsupported,
                 fmt::format("{} over {} is not computed by CAIS; use another backend for it",
                             wire::to_string(found.descriptor), transport_name_)};
  }
  if (auto checked = check_pointers(collective, found.plan); !checked) return checked.error();
  operation.collective = collective;
  operation.descriptor = found.descriptor;
  operation.descriptor_hash = found.hash;
  operation.plan = found.plan;
  return {};
}

Result<std::shared_ptr<Operation>> GroupCommunicator::start(
    const Collective& collective, Start how, std::shared_ptr<void> keep_alive,
    std::function<void(const Operation&)> on_done) {
  auto operation = std::make_shared<Operation>();
  operation->keep_alive = std::move(keep_alive);
  operation->on_done = std::move(on_done);
  {
    const std::lock_guard lock(queue_mutex_);
    if (auto prepared = prepare(collective, *operation); !prepared) return prepared.error();
    queued_.push_back({operation, io::now() + config_.timeout});
    if (how == Start::background) {
      background_ = true;
      if (!progress_thread_.joinable()) {
        progress_thread_ = std::thread(&GroupCommunicator::run_progress_thread, this);
      }
    }
  }
  if (Drive drive(drive_, std::try_to_lock); drive.owns_lock()) {
    take_queued();
    if (transport_ != nullptr) transport_->progress();
    call_back_finished(drive);
  }
  if (how == Start::background && !operation->done()) background_changed_.notify_one();
  return operation;
}

Result<void> GroupCommunicator::run(const Collective& collective) {
  waiters_.fetch_add(1, std::memory_order_relaxed);
  Drive drive(drive_);
  waiters_.fetch_sub(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(queue_mutex_);
    if (auto prepared = prepare(collective, resident_); !prepared) return prepared.error();
  }
  take_queued();
  if (!under_way_.empty()) {
    // Callbacks may run before ours is done, with `drive` released: the resident one is not safe.
    drive.unlock();
    auto operation = start(collective, Start::caller_waits, nullptr, nullptr);
    return operation ? wait(**operation, config_.timeout) : operation.error();
  }
  resident_.rearm();
  launch(resident_);
  Instant deadline = never;
  drive_until_done(drive, resident_, &deadline, config_.timeout);
  Result<void> outcome = resident_.outcome();
  give_drive_back(drive);
  return outcome;
}

Result<void> GroupCommunicator::wait(Operation& operation, Duration timeout) {
  if (operation.done()) return operation.outcome();
  const Duration limit = timeout < Duration(0) ? config_.timeout : timeout;
  waiters_.fetch_add(1, std::memory_order_relaxed);
  Drive drive(drive_);
  waiters_.fetch_sub(1, std::memory_order_relaxed);
  take_queued();
  Instant deadline = io::now() + limit;
  drive_until_done(drive, operation, &deadline, limit);
  give_drive_back(drive);
  return operation.outcome();
}

/// Drives the transport until `operation` is done. `*deadline` may be `never`: then it is `timeout`
/// from the first time that the clock has to be looked at.
void GroupCommunicator::drive_until_done(Drive& drive, Operation& operation, Instant* deadline,
                                         Duration timeout) {
  while (transport_ != nullptr) {
    transport_->progress();
    if (operation.done()) return;
    call_back_finished(drive);
    if (transport_ == nullptr) return;
    transport_->wait(wait_slice);
    transport_->progress();
    if (operation.done()) return;  // as soon as it can be
    take_queued();
    const Instant now = io::now();
    if (*deadline == never) *deadline = now + timeout;
    if (now >= *deadline) transport_->abort(timeout_error(timeout));
  }
}

Error GroupCommunicator::timeout_error(Duration timeout) const {
  return Error{
      ErrorCode::timed_out,
      fmt::format("group \"{}\", rank {}: not done within {} ms: {}", config_.name, config_.rank,
                  std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count(),
                  transport_->waiting_for())};
}

void GroupCommunicator::take_queued() {
  const std::lock_guard lock(queue_mutex_);
  while (!queued_.empty()) {
    under_way_.push_back(std::move(queued_.front()));
    queued_.pop_front();
    launch(*under_way_.back().operation);
  }
}

void GroupCommunicator::launch(Operation& operation) {
  if (transport_ == nullptr) {
    operation.finish(Error{ErrorCode::aborted, "group \"" + config_.name + "\" was shut down"});
    return;
  }
  operation.op_seq = next_op_seq_++;
  transport_->start(operation);
}

/// Calls `on_done` of what has ended, oldest first, with `drive` released meanwhile: a thread that
/// drives then may call back for later ones at the same time.
void GroupCommunicator::call_back_finished(Drive& drive) {
  std::vector<std::shared_ptr<Operation>> finished;
  while (!under_way_.empty() && under_way_.front().operation->done()) {
    finished.push_back(std::move(under_way_.front().operation));
    under_way_.pop_front();
  }
  if (finished.empty()) return;
  drive.unlock();
  for (const auto& operation : finished) {
    if (operation->on_done) operation->on_done(*operation);
    operation->keep_alive.reset();
  }
  drive.lock();
}

/// Leaves the driving to the progress thread where there is work that nobody waits for.
void GroupCommunicator::give_drive_back(Drive& drive) {
  if (under_way_.empty()) return;
  call_back_finished(drive);
  const bool work_left = !under_way_.empty();
  drive.unlock();
  if (work_left) background_changed_.notify_one();
}

void GroupCommunicator::run_progress_thread() {
  std::unique_lock lock(queue_mutex_);
  while (!stopping_) {
    if (!background_ || waiters_.load(std::memory_order_relaxed) != 0) {
      background_changed_.wait_for(lock, background_ ? wait_slice : std::chrono::hours(1));
      continue;
    }
    background_ = false;
    lock.unlock();
    {
      Drive drive(drive_);
      progress_in_background(drive);
    }
    lock.lock();
  }
}

/// Drives until all is done, or somebody who waits wants to.
void GroupCommunicator::progress_in_background(Drive& drive) {
  while (true) {
    take_queued();
    if (transport_ == nullptr) return call_back_finished(drive);
    transport_->progress();
    call_back_finished(drive);
    if (under_way_.empty()) return;
    if (waiters_.load(std::memory_order_relaxed) == 0) {
      transport_->wait(wait_slice);
      if (!under_way_.empty() && io::now() >= under_way_.front().deadline) {
        transport_->abort(timeout_error(config_.timeout));
      }
    }
    const std::lock_guard lock(queue_mutex_);
    background_ = true;
    if (stopping_ || waiters_.load(std::memory_order_relaxed) != 0) return;
  }
}

void GroupCommunicator::stop_progress_thread() {
  {
    const std::lock_guard lock(queue_mutex_);
    stopping_ = true;
  }
  background_changed_.notify_all();
  if (progress_thread_.joinable()) progress_thread_.join();
}

void GroupCommunicator::abort(const std::string& reason) {
  std::shared_ptr<Transport> transport;
  {
    const std::lock_guard lock(queue_mutex_);
    transport = transport_;
  }
  if (transport == nullptr) return;
  transport->abort(Error{ErrorCode::aborted, fmt::format("group \"{}\", rank {}: {}", config_.name,
                                                         config_.rank, reason)});
}

void GroupCommunicator::shutdown() {
  waiters_.fetch_add(1, std::memory_order_relaxed);
  Drive drive(drive_);
  waiters_.fetch_sub(1, std::memory_order_relaxed);
  const Instant deadline = io::now() + shutdown_timeout;
  take_queued();
  while (transport_ != nullptr && !under_way_.empty()) {
    transport_->progress();
    call_back_finished(drive);
    if (under_way_.empty()) break;
    transport_->wait(wait_slice);
    if (io::now() >= deadline) {
      transport_->abort(Error{ErrorCode::aborted,
                              "the group was shut down with collectives under "
                              "way: " +
                                  transport_->waiting_for()});
    }
  }
  std::shared_ptr<Transport> transport;  // its end may take time: let it go with no lock held
  {
    const std::lock_guard lock(queue_mutex_);
    closed_ = true;
    transport = std::move(transport_);
    transport_ = nullptr;
  }
  drive.unlock();
}

}  // namespace cais::runtime
