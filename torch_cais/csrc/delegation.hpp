// torch_cais/csrc/delegation.hpp — collectives that go to another library once all ranks have said
// that they want the same. Before that, nothing of them is under way there: Gloo has no abort, and
// what one rank alone began would hold up the end of its process.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace cais::pytorch {

/// A collective that waits for its turn, is under way at the other library, or was refused.
class DelegatedWork final : public c10d::Work {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using Issue = std::function<WorkPtr()>;

  DelegatedWork(c10d::OpType type, Issue issue);

  /// What ends when all ranks have announced the same, if that goes on in the background: `wait`
  /// drives it.
  void announced_by(WorkPtr announcement) { announcement_ = std::move(announcement); }
  /// Returns when the other library has it; throws what refused it.
  void await_issue() const;

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  std::vector<at::Tensor> result() override;
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override { wait(kNoTimeout); }
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  friend class Delegation;
  bool decided() const { return decided_.load(std::memory_order_acquire); }
  void issue();
  void refuse(std::exception_ptr why);
  void decide();

  const c10::intrusive_ptr<c10::ivalue::Future> future_;
  WorkPtr announcement_;
  Issue issue_;
  bool agreed_ = false;  // under the Delegation's mutex
  // Set before `decided_`: one of the two.
  WorkPtr inner_;
  std::exception_ptr refusal_;
  std::atomic<bool> decided_{false};
};

/// Issues what was agreed on in the order of the calls, the same at all ranks: the other library
/// tells collectives apart by counting them. Thread-safe.
class Delegation {
 public:
  using WorkPtr = c10::intrusive_ptr<DelegatedWork>;

  /// Takes the next place in the order. `agree` or `refuse` follows.
  void enter(WorkPtr work);
  void agree(DelegatedWork& work);
  void refuse(DelegatedWork& work, std::exception_ptr why);

 private:
  std::recursive_mutex mutex_;  // what follows a collective at once may call the next one
  std::deque<WorkPtr> waiting_;
};

}  // namespace cais::pytorch
