// torch_cais/csrc/backend.hpp — the c10d::Backend "cais".
//
// Each collective takes one of two ways, chosen by facts that all ranks share (route.hpp):
//   computed   staged as flat memory (staging.hpp) and handed to the group's communicator. With
//              asyncOp unset the caller drives it to its end and nothing is allocated.
//   delegated  to an inner Gloo, or NCCL for tensors on a GPU. What Gloo gets is announced to the
//              communicator first, so that a rank which calls another collective is refused.
// Both are counted (stats.hpp).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "delegation.hpp"
#include "route.hpp"
#include "runtime/communicator.hpp"
#include "staging.hpp"
#include "stats.hpp"
#include "torch_releases.hpp"

namespace cais::pytorch {

/// One call of one collective, whichever way it takes.
struct Call {
  Op op;
  c10d::OpType type;
  const char* title;  // for the profiler
  bool async;
  std::chrono::milliseconds timeout;
  at::TensorList inputs = {};  // for the profiler
};

class CaisBackend final : public Backend {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<std::vector<at::Tensor>>;

  /// `nccl` may be null; the others may not.
  CaisBackend(std::shared_ptr<runtime::Communicator> communicator,
              c10::intrusive_ptr<c10d::Backend> gloo, c10::intrusive_ptr<c10d::Backend> nccl,
              std::shared_ptr<GroupStats> stats, int rank, int ranks,
              std::chrono::milliseconds timeout);
  ~CaisBackend() override;

  const std::string getBackendName() const override { return "cais"; }
  void setTimeout(std::chrono::milliseconds timeout) override;
  void abort() override;
  void shutdown() override;
  void setSequenceNumberForGroup() override {}  // counts from 0 at every rank
  std::uint64_t getSequenceNumberForGroup() override { return sequence_.load(); }
  void startCoalescing() override;
  WorkPtr endCoalescing() override;

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;

  WorkPtr allgather(TensorLists& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;

  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;

  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input,
                        std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits,
                        const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override;
  WorkPtr gather(TensorLists& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs,
                  const c10d::ScatterOptions& options) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;

  WorkPtr send(Tensors& tensors, int to, int tag) override;
  WorkPtr recv(Tensors& tensors, int from, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

 private:
  /// The way of a collective that moves `tensor`, and what it needs if that is CAIS.
  Route route_to_move(OpKind kind, const at::Tensor& tensor, Elements* elements) const;
  Route route_to_reduce(OpKind kind, const at::Tensor& tensor, const c10d::ReduceOp& reduce_op,
                        Elements* elements) const;
  Route route_of(OpKind kind, const Elements& elements) const;
  std::optional<Route> route_of_tensor(const at::Tensor& tensor) const;

  /// Runs collectives on CAIS: now, or in the background when `call.async`.
  WorkPtr launch(const Call& call, std::span<const runtime::Collective> collectives,
                 Staging staging, at::TensorList outputs);
  void run(const Call& call, const runtime::Collective& collective);
  WorkPtr start(const Call& call, std::span<const runtime::Collective> collectives, Staging staging,
                at::TensorList outputs);

  /// What tells the other ranks which collective goes to Gloo here: zero bytes through CAIS, so
  /// that a rank which calls another one, or computes it, is refused.
  runtime::Collective announcement(const Call& call, int reduce_op) const;

  /// Hands a collective to the library that `route` names. `issue` calls it there, perhaps when
  /// this has returned: it holds all that it needs.
  using Issue = std::function<WorkPtr(c10d::Backend&)>;
  WorkPtr delegate(const Call& call, Route route, std::uint64_t bytes, Issue issue,
                   int reduce_op = c10d::ReduceOp::UNUSED);
  /// For reductions: Gloo knows no average, so it gets a sum, and `outputs` are divided here.
  using IssueReduction = std::function<WorkPtr(c10d::Backend&, const c10d::ReduceOp&)>;
  WorkPtr delegate_reduction(const Call& call, Route route, std::uint64_t bytes,
                             const c10d::ReduceOp& reduce_op, at::TensorList outputs,
                             IssueReduction issue);
  WorkPtr delegate_agreed(const Call& call, Issue issue, int reduce_op);
  WorkPtr noted(WorkPtr work);  // remembers it when a coalesced block is open

  c10d::Backend& inner(Path path) const { return path == Path::nccl ? *nccl_ : *gloo_; }
  std::string where(Op op) const;
  [[noreturn]] void refuse(Op op, const std::string& why) const;
  const at::Tensor& only(const Tensors& tensors, Op op) const;
  void check_whole(Op op, const at::Tensor& whole, const at::Tensor& unit) const;
  void check_list(Op op, const Tensors& list, const at::Tensor& like) const;

  std::shared_ptr<runtime::Communicator> communicator_;
  c10::intrusive_ptr<c10d::Backend> gloo_;
  c10::intrusive_ptr<c10d::Backend> nccl_;
  std::shared_ptr<GroupStats> stats_;
  std::shared_ptr<Delegation> to_gloo_ = std::make_shared<Delegation>();
  std::chrono::milliseconds timeout_;
  bool timeout_changed_ = false;  // by setTimeout: the communicator's own no longer holds
  WorkPtr done_;                  // what every collective returns that was over at once
  std::atomic<std::uint64_t> sequence_{0};
  std::mutex coalescing_mutex_;
  std::optional<std::vector<WorkPtr>> coalescing_;  // under coalescing_mutex_
};

}  // namespace cais::pytorch
