#include "runtime/mixed/mixed_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace cais::runtime::mixed {
namespace {

// While both legs have work, neither may be slept on for long.
constexpr Duration wait_between_legs = std::chrono::microseconds(100);

bool has_work(const Job& job, Where where) {
  return std::any_of(job.steps.begin(), job.steps.end(), [where](const Step& step) {
    return step.where == where && step.operation && !step.operation->done();
  });
}

}  // namespace

MixedTransport::MixedTransport(Hosts hosts, Seat seat, Leg local, Leg across)
    : hosts_(std::move(hosts)), seat_(seat), local_(std::move(local)), across_(std::move(across)) {}

MixedTransport::~MixedTransport() {
  if (!jobs_.empty()) fail(Error{ErrorCode::aborted, "the group ended with collectives under way"});
}

bool MixedTransport::supports(const Collective& collective) const {
  // Only leaders have both legs; all legs compute the same sums, so the local one can answer.
  return local_.transport->supports(collective);
}

void MixedTransport::start(Operation& operation) {
  jobs_.push_back(make_job(hosts_, seat_, operation));
}

bool MixedTransport::progress() {
  bool moved = drive_legs();
  while (!jobs_.empty() && advance(jobs_.front())) {
    moved = true;
    drive_legs();
  }
  return moved;
}

bool MixedTransport::drive_legs() {
  bool moved = local_.transport->progress();
  if (across_.transport) moved |= across_.transport->progress();
  return moved;
}

/// Takes the job as far as it goes without waiting; true when a step began or the job ended.
bool MixedTransport::advance(Job& job) {
  bool all_done = true;
  for (const Step& step : job.steps) {
    const bool done = step.operation && step.operation->done();
    all_done &= done;
    if (!done || step.operation->outcome()) continue;
    fail(step.operation->outcome().error());
    return true;
  }
  if (all_done) {
    Operation* const operation = job.operation;
    jobs_.pop_front();
    operation->finish({});
    return true;
  }
  const bool local_began = begin_ready(job, Where::local);
  return begin_ready(job, Where::across) || local_began;
}

/// Begins the steps of one leg in their order, up to the first that must wait.
bool MixedTransport::begin_ready(Job& job, Where where) {
  std::size_t& next = where == Where::local ? job.next_local : job.next_across;
  bool began = false;
  for (; next < job.steps.size(); ++next) {
    Step& step = job.steps[next];
    if (step.where != where) continue;
    if (step.after) {
      const auto& before = job.steps[*step.after].operation;
      if (!before || !before->done()) return began;
    }
    if (auto begun = begin(job, step); !begun) {
      fail(begun.error());
      return true;
    }
    began = true;
  }
  return began;
}

Result<void> MixedTransport::begin(Job& job, Step& step) {
  Leg& on = leg(step.where);
  auto known = on.plans->find(step.collective);
  if (!known) return known.error();
  if (step.prepare) step.prepare();
  step.operation = std::make_unique<Operation>();
  step.operation->collective = step.collective;
  step.operation->descriptor = (*known)->descriptor;
  // A step stands for one collective of the whole group: ranks whose collectives differ must not
  // meet in steps that look alike (P12).
  step.operation->descriptor.group ^= job.operation->descriptor_hash.value;
  step.operation->descriptor_hash = wire::hash(step.operation->descriptor);
  step.operation->plan = (*known)->plan;
  step.operation->op_seq = on.next_op_seq++;
  step.operation->step_of = job.operation;
  on.transport->start(*step.operation);
  return {};
}

/// Ends both legs, so that the peers on this host and on the others hear of it, then all jobs.
void MixedTransport::fail(const Error& error) {
  local_.transport->abort(error);
  if (across_.transport) across_.transport->abort(error);
  drive_legs();  // ends the steps that are under way
  std::deque<Job> ended;
  ended.swap(jobs_);
  for (Job& job : ended) job.operation->finish(error);
}

void MixedTransport::wait(Duration limit) {
  if (jobs_.empty()) return;
  const bool local = has_work(jobs_.front(), Where::local);
  const bool across = has_work(jobs_.front(), Where::across);
  if (local) local_.transport->wait(across ? std::min(limit, wait_between_legs) : limit);
  if (across) across_.transport->wait(local ? std::min(limit, wait_between_legs) : limit);
}

void MixedTransport::abort(const Error& error) {
  local_.transport->abort(error);
  if (across_.transport) across_.transport->abort(error);
}

std::string MixedTransport::waiting_for() const {
  std::string words = local_.transport->waiting_for();
  if (!across_.transport) {
    return words + fmt::format(" (rank {} speaks for this host, and may itself wait for others)",
                               hosts_.members[seat_.host].front());
  }
  const std::string across = across_.transport->waiting_for();
  if (!across.empty()) {
    words += (words.empty() ? "" : "; ") + ("between the first ranks of the hosts: " + across);
  }
  return words;
}

}  // namespace cais::runtime::mixed
