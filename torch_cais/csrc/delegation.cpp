#include "delegation.hpp"

#include <ATen/core/jit_type.h>

namespace cais::pytorch {

using c10::ivalue::Future;

DelegatedWork::DelegatedWork(c10d::OpType type, Issue issue)
    : Work(-1, type),
      future_(c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()))),
      issue_(std::move(issue)) {}

void DelegatedWork::issue() {
  try {
    inner_ = issue_();
    inner_->getFuture()->addCallback([future = future_](Future& inner) {
      if (inner.hasError()) {
        future->setError(inner.exception_ptr());
      } else {
        future->markCompleted(inner.value());
      }
    });
    decide();
  } catch (...) {
    refuse(std::current_exception());
  }
}

void DelegatedWork::refuse(std::exception_ptr why) {
  inner_.reset();
  refusal_ = why;
  decide();
  future_->setError(std::move(why));
}

void DelegatedWork::decide() {
  issue_ = nullptr;  // its tensors are the other library's now
  decided_.store(true, std::memory_order_release);
  decided_.notify_all();
}

void DelegatedWork::await_issue() const {
  decided_.wait(false, std::memory_order_acquire);
  if (refusal_) std::rethrow_exception(refusal_);
}

bool DelegatedWork::isCompleted() { return decided() && (refusal_ || inner_->isCompleted()); }

bool DelegatedWork::isSuccess() const { return decided() && !refusal_ && inner_->isSuccess(); }

std::exception_ptr DelegatedWork::exception() const {
  if (!decided()) return nullptr;
  return refusal_ ? refusal_ : inner_->exception();
}

std::vector<at::Tensor> DelegatedWork::result() {
  await_issue();
  return inner_->result();
}

bool DelegatedWork::wait(std::chrono::milliseconds timeout) {
  if (announcement_) announcement_->wait(timeout);
  await_issue();
  return inner_->wait(timeout);
}

void DelegatedWork::abort() {
  if (announcement_) announcement_->abort();
}

void Delegation::enter(WorkPtr work) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(work));
}

void Delegation::agree(DelegatedWork& work) {
  const std::lock_guard lock(mutex_);
  work.agreed_ = true;
  while (!waiting_.empty() && waiting_.front()->agreed_) {
    const WorkPtr next = std::move(waiting_.front());
    waiting_.pop_front();
    next->issue();
  }
}

// What a group refuses, it refuses for good: nothing behind it is ever agreed on.
void Delegation::refuse(DelegatedWork& work, std::exception_ptr why) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(waiting_, [&work](const WorkPtr& one) { return one.get() == &work; });
  }
  work.refuse(std::move(why));
}

}  // namespace cais::pytorch
