#include "work.hpp"

#include <ATen/core/jit_type.h>

#include <algorithm>

#include "errors.hpp"

namespace cais::pytorch {
namespace {

using c10::ivalue::Future;

/// A future for tensors; for those on devices it orders streams as PyTorch expects.
c10::intrusive_ptr<Future> future_for(const std::vector<at::Tensor>& outputs) {
  std::vector<c10::Device> devices;
  for (const at::Tensor& tensor : outputs) {
    const c10::Device device = tensor.device();
    if (!device.is_cpu() && std::find(devices.begin(), devices.end(), device) == devices.end()) {
      devices.push_back(device);
    }
  }
  return c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()),
                                     std::move(devices));
}

}  // namespace

void Flight::operation_ended(const Result<void>& outcome) {
  if (!outcome) {
    const std::lock_guard lock(mutex_);
    if (!exception_) exception_ = exception_from(where_, outcome.error());
  }
  if (operations_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) land();
}

void Flight::land() {
  try {
    if (!exception_) staging_.land();
  } catch (...) {
    exception_ = std::current_exception();
  }
  c10::intrusive_ptr<Future> asked;
  {
    const std::lock_guard lock(mutex_);
    landed_.store(true, std::memory_order_release);
    asked = future_;
  }
  landed_.notify_all();
  if (on_end_) on_end_();
  if (asked) complete(*asked);
}

void Flight::complete(Future& future) const {
  if (exception_) {
    future.setError(exception_);
  } else {
    future.markCompleted(c10::IValue(outputs_));
  }
}

std::exception_ptr Flight::exception() const { return landed() ? exception_ : nullptr; }

c10::intrusive_ptr<Future> Flight::future() {
  std::unique_lock lock(mutex_);
  if (!future_) {
    future_ = future_for(outputs_);
    if (landed()) complete(*future_);  // no callback can be waiting on it yet
  }
  return future_;
}

bool AsyncWork::wait(std::chrono::milliseconds timeout) {
  const Duration limit = timeout == kNoTimeout ? Duration(timeout_) : Duration(timeout);
  for (const auto& operation : operations_) {
    if (operation->done()) continue;
    const Result<void> outcome = communicator_->wait(*operation, limit);
    if (!outcome) throw_error(flight_->where(), outcome.error());
  }
  flight_->await_landing();
  if (const auto exception = flight_->exception()) std::rethrow_exception(exception);
  return true;
}

void AsyncWork::abort() { communicator_->abort(flight_->where() + " was aborted by its caller"); }

c10::intrusive_ptr<Future> DoneWork::getFuture() {
  auto future = future_for(outputs_);
  future->markCompleted(c10::IValue(outputs_));
  return future;
}

bool CompositeWork::isCompleted() {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const auto& part) { return part->isCompleted(); });
}

bool CompositeWork::isSuccess() const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const auto& part) { return part->isSuccess(); });
}

std::exception_ptr CompositeWork::exception() const {
  for (const auto& part : parts_) {
    if (auto exception = part->exception()) return exception;
  }
  return nullptr;
}

bool CompositeWork::wait(std::chrono::milliseconds timeout) {
  for (const auto& part : parts_) {
    if (!part->wait(timeout)) return false;
  }
  finish_once();
  return true;
}

void CompositeWork::abort() {
  for (const auto& part : parts_) part->abort();
}

c10::intrusive_ptr<Future> CompositeWork::getFuture() {
  auto last = parts_.back()->getFuture();
  if (!afterwards_) return last;
  return last->then(
      [self = c10::intrusive_ptr<CompositeWork>::reclaim_copy(this)](Future& inner) {
        if (inner.hasError()) std::rethrow_exception(inner.exception_ptr());
        self->finish_once();
        return inner.value();
      },
      last->elementType());
}

void CompositeWork::finish_once() {
  if (afterwards_) std::call_once(finished_, afterwards_);
}

}  // namespace cais::pytorch
