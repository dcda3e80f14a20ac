// torch_cais/csrc/work.hpp — the handles that collectives return to PyTorch.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "runtime/communicator.hpp"
#include "staging.hpp"

namespace cais::pytorch {

/// What an asynchronous collective needs until it has landed: its tensors, the copies that put
/// results in their place, and whoever waits. Several operations may make up one collective (the
/// coalesced forms). Each operation keeps the flight alive; the flight knows no operation.
class Flight {
 public:
  Flight(std::size_t operations, Staging staging, std::vector<at::Tensor> outputs,
         std::string where, std::function<void()> on_end)
      : operations_left_(operations),
        staging_(std::move(staging)),
        outputs_(std::move(outputs)),
        where_(std::move(where)),
        on_end_(std::move(on_end)) {}

  /// Called once for each operation, by the thread that finished it. The last lands the flight.
  void operation_ended(const Result<void>& outcome);

  bool landed() const { return landed_.load(std::memory_order_acquire); }
  void await_landing() const { landed_.wait(false, std::memory_order_acquire); }
  /// Null while under way, and when all went well.
  std::exception_ptr exception() const;
  const std::vector<at::Tensor>& outputs() const { return outputs_; }
  const std::string& where() const { return where_; }
  /// Completed with the outputs when the flight lands.
  c10::intrusive_ptr<c10::ivalue::Future> future();

 private:
  void land();
  void complete(c10::ivalue::Future& future) const;

  std::atomic<std::size_t> operations_left_;
  Staging staging_;
  std::vector<at::Tensor> outputs_;
  std::string where_;
  std::function<void()> on_end_;
  mutable std::mutex mutex_;
  std::exception_ptr exception_;                    // under mutex_ until landed
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // under mutex_
  std::atomic<bool> landed_{false};
};

/// A collective that CAIS computes while the caller does something else.
class AsyncWork final : public c10d::Work {
 public:
  AsyncWork(int rank, c10d::OpType type, const char* title,
            const std::optional<std::vector<at::Tensor>>& inputs, std::uint64_t sequence,
            std::shared_ptr<runtime::Communicator> communicator)
      : Work(rank, type, title, inputs),
        communicator_(std::move(communicator)),
        sequence_(sequence) {}

  /// Takes over the profiler's end-of-op callback; the flight calls it on landing.
  std::function<void()> take_profiling_end() { return std::move(recordFunctionEndCallback_); }
  void launched(std::shared_ptr<Flight> flight,
                std::vector<std::shared_ptr<runtime::Operation>> operations) {
    flight_ = std::move(flight);
    operations_ = std::move(operations);
  }
  /// The limit of `wait` when it is given none; negative: the communicator's own.
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }

  bool isCompleted() override { return flight_->landed(); }
  bool isSuccess() const override { return flight_->landed() && !flight_->exception(); }
  std::exception_ptr exception() const override { return flight_->exception(); }
  std::vector<at::Tensor> result() override { return flight_->outputs(); }
  std::uint64_t getSequencenumber() const override { return sequence_; }
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override { wait(kNoTimeout); }
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return flight_->future(); }

 private:
  std::shared_ptr<runtime::Communicator> communicator_;
  std::shared_ptr<Flight> flight_;
  std::vector<std::shared_ptr<runtime::Operation>> operations_;
  std::chrono::milliseconds timeout_{-1};
  std::uint64_t sequence_;
};

/// A collective that was over before its call returned.
class DoneWork final : public c10d::Work {
 public:
  explicit DoneWork(std::vector<at::Tensor> outputs = {}) : outputs_(std::move(outputs)) {}
  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
  std::exception_ptr exception() const override { return nullptr; }
  std::vector<at::Tensor> result() override { return outputs_; }
  bool wait(std::chrono::milliseconds) override { return true; }
  void synchronize() override {}
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  std::vector<at::Tensor> outputs_;
};

/// Several pieces of work as one: what was issued between startCoalescing and endCoalescing, or
/// an inner library's work and what has to follow it.
class CompositeWork final : public c10d::Work {
 public:
  /// `afterwards` runs once, when all parts have ended well: in the first `wait`, or before the
  /// future completes.
  CompositeWork(c10d::OpType type, std::vector<c10::intrusive_ptr<c10d::Work>> parts,
                std::function<void()> afterwards = nullptr)
      : Work(-1, type), parts_(std::move(parts)), afterwards_(std::move(afterwards)) {}

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  std::vector<at::Tensor> result() override { return parts_.back()->result(); }
  int sourceRank() const override { return parts_.back()->sourceRank(); }
  std::uint64_t getSequencenumber() const override { return parts_.back()->getSequencenumber(); }
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override { wait(kNoTimeout); }
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  void finish_once();

  std::vector<c10::intrusive_ptr<c10d::Work>> parts_;
  std::function<void()> afterwards_;
  std::once_flag finished_;
};

}  // namespace cais::pytorch
