#include "backend.hpp"

#include <ATen/record_function.h>
#include <torch/csrc/utils/pybind.h>

#include "errors.hpp"
#include "work.hpp"

namespace cais::pytorch {
namespace {

OpKind kind_of(Op op) {
  switch (op) {
    case Op::all_reduce:
      return OpKind::all_reduce;
    case Op::all_gather:
      return OpKind::all_gather;
    case Op::reduce_scatter:
      return OpKind::reduce_scatter;
    case Op::broadcast:
      return OpKind::broadcast;
    case Op::reduce:
      return OpKind::reduce;
    case Op::all_to_all:
      return OpKind::all_to_all;
    case Op::gather:
      return OpKind::gather;
    case Op::scatter:
      return OpKind::scatter;
    default:
      return OpKind::barrier;
  }
}

}  // namespace

CaisBackend::CaisBackend(std::shared_ptr<runtime::Communicator> communicator,
                         c10::intrusive_ptr<c10d::Backend> gloo,
                         c10::intrusive_ptr<c10d::Backend> nccl, std::shared_ptr<GroupStats> stats,
                         int rank, int ranks, std::chrono::milliseconds timeout)
    : pytorch::Backend(rank, ranks),
      communicator_(std::move(communicator)),
      gloo_(std::move(gloo)),
      nccl_(std::move(nccl)),
      stats_(std::move(stats)),
      timeout_(timeout),
      done_(c10::make_intrusive<DoneWork>()) {}

// Threads of the inner libraries, and ours, may drop the last reference to a tensor that Python
// knows of, for which they take the GIL: whoever holds that must not join them.
CaisBackend::~CaisBackend() {
  std::optional<pybind11::gil_scoped_release> no_gil;
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) no_gil.emplace();
  nccl_.reset();
  gloo_.reset();
  communicator_.reset();
}

void CaisBackend::setTimeout(std::chrono::milliseconds timeout) {
  timeout_ = timeout;
  timeout_changed_ = true;
  set_timeout_of_inner(*gloo_, timeout);
  if (nccl_) set_timeout_of_inner(*nccl_, timeout);
}

void CaisBackend::abort() {
  communicator_->abort("the process group was aborted by its user");
  abort_inner(*gloo_);
  if (nccl_) abort_inner(*nccl_);
}

void CaisBackend::shutdown() {
  communicator_->shutdown();
  shut_down_inner(*gloo_);
  if (nccl_) shut_down_inner(*nccl_);
}

void CaisBackend::startCoalescing() {
  const std::lock_guard lock(coalescing_mutex_);
  coalescing_.emplace();
}

CaisBackend::WorkPtr CaisBackend::endCoalescing() {
  std::optional<std::vector<WorkPtr>> works;
  {
    const std::lock_guard lock(coalescing_mutex_);
    works.swap(coalescing_);
  }
  if (!works || works->empty()) return done_;
  return c10::make_intrusive<CompositeWork>(c10d::OpType::COALESCED, std::move(*works));
}

CaisBackend::WorkPtr CaisBackend::noted(WorkPtr work) {
  const std::lock_guard lock(coalescing_mutex_);
  if (coalescing_) coalescing_->push_back(work);
  return work;
}

std::optional<Route> CaisBackend::route_of_tensor(const at::Tensor& tensor) const {
  if (tensor.is_cuda() && nccl_) return Route{Path::nccl, Reason::cuda};
  if (tensor.layout() != at::kStrided) return Route{Path::gloo, Reason::sparse};
  return std::nullopt;
}

/// CAIS's own, where the group's transport computes such a collective.
Route CaisBackend::route_of(OpKind kind, const Elements& elements) const {
  runtime::Collective asked;
  asked.kind = kind;
  asked.reduce_op = elements.reduce_op;
  asked.dtype = elements.dtype;
  if (!communicator_->supports(asked)) return {Path::gloo, Reason::transport};
  return {};
}

Route CaisBackend::route_to_move(OpKind kind, const at::Tensor& tensor, Elements* elements) const {
  if (const auto route = route_of_tensor(tensor)) return *route;
  const auto moved = elements_to_move(tensor.scalar_type());
  if (!moved) return {Path::gloo, Reason::dtype};
  *elements = *moved;
  return route_of(kind, *elements);
}

Route CaisBackend::route_to_reduce(OpKind kind, const at::Tensor& tensor,
                                   const c10d::ReduceOp& reduce_op, Elements* elements) const {
  if (const auto route = route_of_tensor(tensor)) return *route;
  Reason reason = Reason::none;
  const auto reduced = elements_to_reduce(tensor.scalar_type(), reduce_op, &reason);
  if (!reduced) return {Path::gloo, reason};
  *elements = *reduced;
  return route_of(kind, *elements);
}

CaisBackend::WorkPtr CaisBackend::launch(const Call& call,
                                         std::span<const runtime::Collective> collectives,
                                         Staging staging, at::TensorList outputs) {
  sequence_.fetch_add(1, std::memory_order_relaxed);
  if (call.async) return noted(start(call, collectives, std::move(staging), outputs));
  at::RecordFunction profiled(at::RecordScope::USER_SCOPE);
  if (profiled.isActive()) {
    profiled._setAsync();  // as the works of PyTorch's own backends are
    const std::vector<c10::IValue> inputs(call.inputs.begin(), call.inputs.end());
    profiled.before(call.title, c10::ArrayRef<const c10::IValue>(inputs.data(), inputs.size()));
  }
  for (const runtime::Collective& collective : collectives) run(call, collective);
  staging.land();
  return done_;
}

void CaisBackend::run(const Call& call, const runtime::Collective& collective) {
  const bool own_timeout = call.timeout != c10d::kUnsetTimeout || timeout_changed_;
  Result<void> outcome;
  if (!own_timeout) {
    outcome = communicator_->run(collective);
  } else {
    auto operation = communicator_->start(collective, runtime::Start::caller_waits);
    if (!operation) throw_error(where(call.op), operation.error());
    const auto limit = call.timeout != c10d::kUnsetTimeout ? call.timeout : timeout_;
    outcome = communicator_->wait(**operation, limit);
  }
  if (!outcome) throw_error(where(call.op), outcome.error());
}

CaisBackend::WorkPtr CaisBackend::start(const Call& call,
                                        std::span<const runtime::Collective> collectives,
                                        Staging staging, at::TensorList outputs) {
  auto work =
      c10::make_intrusive<AsyncWork>(getRank(), call.type, call.title, call.inputs.vec(),
                                     sequence_.load(std::memory_order_relaxed), communicator_);
  if (call.timeout != c10d::kUnsetTimeout) {
    work->set_timeout(call.timeout);
  } else if (timeout_changed_) {
    work->set_timeout(timeout_);
  }
  auto flight = std::make_shared<Flight>(collectives.size(), std::move(staging), outputs.vec(),
                                         where(call.op), work->take_profiling_end());
  std::vector<std::shared_ptr<runtime::Operation>> operations;
  operations.reserve(collectives.size());
  for (const runtime::Collective& collective : collectives) {
    auto operation = communicator_->start(
        collective, runtime::Start::background, flight,
        [flight = flight.get()](const runtime::Operation& ended) {  // kept alive by the operation
          flight->operation_ended(ended.outcome());
        });
    if (!operation) throw_error(where(call.op), operation.error());
    operations.push_back(*std::move(operation));
  }
  work->launched(std::move(flight), std::move(operations));
  return work;
}

runtime::Collective CaisBackend::announcement(const Call& call, int reduce_op) const {
  runtime::Collective zero_bytes;
  zero_bytes.kind = kind_of(call.op);
  if (wire::reduces(zero_bytes.kind)) zero_bytes.reduce_op = ReduceOp::sum;
  // An empty tensor may have any dims: they carry what a descriptor has no names for.
  const auto dtype =
      call.inputs.empty() ? at::ScalarType::Undefined : call.inputs.front().scalar_type();
  zero_bytes.dims = 3;
  zero_bytes.shape = {0, static_cast<std::uint64_t>(reduce_op) + 1,
                      static_cast<std::uint64_t>(dtype) + 1};
  return zero_bytes;
}

CaisBackend::WorkPtr CaisBackend::delegate(const Call& call, Route route, std::uint64_t bytes,
                                           Issue issue, int reduce_op) {
  const bool collective = !c10d::isP2POp(call.type);
  if (collective) sequence_.fetch_add(1, std::memory_order_relaxed);
  stats_->count(call.op, route, bytes);
  if (!collective || route.path != Path::gloo) return noted(issue(inner(route.path)));
  return noted(delegate_agreed(call, std::move(issue), reduce_op));
}

/// Gloo gets it when all ranks have announced the same.
CaisBackend::WorkPtr CaisBackend::delegate_agreed(const Call& call, Issue issue, int reduce_op) {
  const runtime::Collective announced = announcement(call, reduce_op);
  auto work = c10::make_intrusive<DelegatedWork>(
      call.type, [gloo = gloo_, issue = std::move(issue)] { return issue(*gloo); });
  to_gloo_->enter(work);
  if (!call.async) {
    try {
      run(call, announced);
    } catch (...) {
      to_gloo_->refuse(*work, std::current_exception());
      throw;
    }
    to_gloo_->agree(*work);
    work->await_issue();
    return work;
  }
  WorkPtr announcing;
  try {
    announcing = start(call, {&announced, 1}, Staging(false), {});
  } catch (...) {
    to_gloo_->refuse(*work, std::current_exception());
    throw;
  }
  work->announced_by(announcing);
  announcing->getFuture()->addCallback([work, delegation = to_gloo_](c10::ivalue::Future& ended) {
    if (ended.hasError()) {
      delegation->refuse(*work, ended.exception_ptr());
    } else {
      delegation->agree(*work);
    }
  });
  return work;
}

CaisBackend::WorkPtr CaisBackend::delegate_reduction(const Call& call, Route route,
                                                     std::uint64_t bytes,
                                                     const c10d::ReduceOp& reduce_op,
                                                     at::TensorList outputs, IssueReduction issue) {
  const bool average = reduce_op.op_ == c10d::ReduceOp::AVG && route.path == Path::gloo;
  const c10d::ReduceOp inner_op = average ? c10d::ReduceOp(c10d::ReduceOp::SUM) : reduce_op;
  auto work =
      delegate(call, route, bytes, [issue = std::move(issue), inner_op](c10d::Backend& inner) {
        return issue(inner, inner_op);
      });
  if (!average) return work;
  auto divide = [sums = outputs.vec(), ranks = getSize()] {
    const c10::NoGradGuard no_grad;
    for (at::Tensor sum : sums) {
      if (at::isIntegralType(sum.scalar_type(), true)) {
        sum.div_(ranks, "trunc");
      } else {
        sum.div_(ranks);
      }
    }
  };
  return c10::make_intrusive<CompositeWork>(call.type, std::vector<WorkPtr>{std::move(work)},
                                            std::move(divide));
}

std::string CaisBackend::where(Op op) const {
  return c10::str("group '", stats_->identity.name, "', rank ", getRank(), " of ", getSize(), ", ",
                  to_string(op));
}

void CaisBackend::refuse(Op op, const std::string& why) const {
  throw_error(where(op), Error{ErrorCode::invalid_argument, why});
}

const at::Tensor& CaisBackend::only(const Tensors& tensors, Op op) const {
  if (tensors.size() != 1) {
    refuse(op, c10::str("takes one tensor, got ", tensors.size(),
                        "; several at once are for the coalesced forms"));
  }
  return tensors.front();
}

void CaisBackend::check_whole(Op op, const at::Tensor& whole, const at::Tensor& unit) const {
  if (whole.scalar_type() != unit.scalar_type()) {
    refuse(op, c10::str("input and output have different dtypes: ", whole.scalar_type(), " and ",
                        unit.scalar_type()));
  }
  if (whole.numel() != unit.numel() * getSize()) {
    refuse(op, c10::str("the tensor of all ranks must hold ", getSize(),
                        " times the elements of "
                        "one rank's: it has shape ",
                        whole.sizes(), ", one rank's has ", unit.sizes()));
  }
}

void CaisBackend::check_list(Op op, const Tensors& list, const at::Tensor& like) const {
  if (list.size() != static_cast<std::size_t>(getSize())) {
    refuse(op, c10::str("the list of tensors must have one for each of the ", getSize(),
                        " ranks, it has ", list.size()));
  }
  for (const at::Tensor& tensor : list) {
    if (tensor.numel() != like.numel() || tensor.scalar_type() != like.scalar_type()) {
      refuse(op,
             c10::str("all tensors of the list must be like the single one (", like.scalar_type(),
                      " ", like.sizes(), "), one is ", tensor.scalar_type(), " ", tensor.sizes()));
    }
  }
}

}  // namespace cais::pytorch
