// The collectives of the backend: for each its checks, the way that it takes, and the flat memory
// that the communicator gets.
#include <algorithm>

#include "backend.hpp"

namespace cais::pytorch {
namespace {

using c10d::OpType;
using runtime::Collective;

/// The shape that the ranks' tensors make together: `tensor` itself, or for kinds that deal out
/// shards, `shards` of them behind each other in dim 0. Dims that a descriptor has no room for are
/// folded into the first.
void set_shape(const at::Tensor& tensor, std::size_t shards, const Elements& elements,
               Collective* collective) {
  const at::IntArrayRef sizes = tensor.sizes();
  const std::size_t folded = sizes.size() - std::min(sizes.size(), wire::dims_max);
  auto& shape = collective->shape;
  collective->dims = static_cast<std::uint8_t>(std::max<std::size_t>(sizes.size() - folded, 1));
  shape[0] = shards;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto size = static_cast<std::uint64_t>(sizes[i]);
    if (i <= folded) {
      shape[0] *= size;
    } else {
      shape[i - folded] = size;
    }
  }
  shape[collective->dims - 1u] *= elements.per_element;
  if (shards > 1) collective->shard_dim = 0;
}

/// A collective in which each rank holds a unit like `tensor`, one of `shards` of the whole.
Collective describe(OpKind kind, const Elements& elements, const at::Tensor& tensor, int shards,
                    const void* send, void* recv, std::int64_t root = 0) {
  Collective collective;
  collective.kind = kind;
  collective.reduce_op = elements.reduce_op;
  collective.dtype = elements.dtype;
  collective.root = Rank(static_cast<std::uint16_t>(root));
  collective.send = send;
  collective.recv = recv;
  collective.count = static_cast<std::size_t>(tensor.numel()) * elements.per_element;
  set_shape(tensor, static_cast<std::size_t>(shards), elements, &collective);
  return collective;
}

template <class Options>
Options with_op(Options options, const c10d::ReduceOp& op) {
  options.reduceOp = op;
  return options;
}

std::uint64_t bytes_of(at::TensorList tensors) {
  std::uint64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.layout() == at::kStrided) bytes += tensor.nbytes();
  }
  return bytes;
}

}  // namespace

CaisBackend::WorkPtr CaisBackend::allreduce(Tensors& tensors,
                                            const c10d::AllreduceOptions& options) {
  const Call call{Op::all_reduce,    OpType::ALLREDUCE, "cais:all_reduce",
                  is_async(options), options.timeout,   tensors};
  const at::Tensor& tensor = only(tensors, call.op);
  Elements elements;
  const Route route = route_to_reduce(OpKind::all_reduce, tensor, options.reduceOp, &elements);
  if (route.path != Path::cais) {
    return delegate_reduction(call, route, bytes_of(tensors), options.reduceOp, tensors,
                              [=](c10d::Backend& inner, const c10d::ReduceOp& op) mutable {
                                return inner.allreduce(tensors, with_op(options, op));
                              });
  }
  stats_->count(call.op, route, tensor.nbytes());
  Staging staging(call.async);
  void* data = staging.read_write(tensor);
  const Collective collective = describe(OpKind::all_reduce, elements, tensor, 1, data, data);
  return launch(call, {&collective, 1}, std::move(staging), tensors);
}

CaisBackend::WorkPtr CaisBackend::allreduce_sparse(Tensors& tensors,
                                                   const c10d::AllreduceOptions& options) {
  const Call call{Op::all_reduce,    OpType::_ALLREDUCE_SPARSE, "cais:all_reduce",
                  is_async(options), options.timeout,           tensors};
  return delegate(call, {Path::gloo, Reason::sparse}, 0, [=](c10d::Backend& inner) mutable {
    return inner.allreduce_sparse(tensors, options);
  });
}

CaisBackend::WorkPtr CaisBackend::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  const Call call{Op::all_reduce,    OpType::ALLREDUCE_COALESCED,
                  "cais:all_reduce", is_async(options),
                  options.timeout,   tensors};
  if (tensors.empty()) return done_;
  Elements elements;
  const Route route =
      route_to_reduce(OpKind::all_reduce, tensors.front(), options.reduceOp, &elements);
  if (route.path != Path::cais) {
    return delegate_reduction(call, route, bytes_of(tensors), options.reduceOp, tensors,
                              [=](c10d::Backend& inner, const c10d::ReduceOp& op) mutable {
                                return inner.allreduce_coalesced(tensors, with_op(options, op));
                              });
  }
  stats_->count(call.op, route, bytes_of(tensors));
  Staging staging(call.async);
  std::vector<Collective> collectives;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.scalar_type() != tensors.front().scalar_type()) {
      refuse(call.op, "all tensors of a coalesced all_reduce must have the same dtype");
    }
    void* data = staging.read_write(tensor);
    collectives.push_back(describe(OpKind::all_reduce, elements, tensor, 1, data, data));
  }
  return launch(call, collectives, std::move(staging), tensors);
}

CaisBackend::WorkPtr CaisBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const Call call{Op::reduce,        OpType::REDUCE,  "cais:reduce",
                  is_async(options), options.timeout, tensors};
  const at::Tensor& tensor = only(tensors, call.op);
  Elements elements;
  const Route route = route_to_reduce(OpKind::reduce, tensor, options.reduceOp, &elements);
  const bool is_root = options.rootRank == getRank();
  if (route.path != Path::cais) {
    const at::TensorList outputs = is_root ? at::TensorList(tensors) : at::TensorList();
    return delegate_reduction(call, route, bytes_of(tensors), options.reduceOp, outputs,
                              [=](c10d::Backend& inner, const c10d::ReduceOp& op) mutable {
                                return inner.reduce(tensors, with_op(options, op));
                              });
  }
  stats_->count(call.op, route, tensor.nbytes());
  Staging staging(call.async);
  void* result = is_root ? staging.read_write(tensor) : nullptr;
  const void* data = is_root ? result : staging.read(tensor);
  const Collective collective =
      describe(OpKind::reduce, elements, tensor, 1, data, result, options.rootRank);
  return launch(call, {&collective, 1}, std::move(staging), tensors);
}

CaisBackend::WorkPtr CaisBackend::broadcast(Tensors& tensors,
                                            const c10d::BroadcastOptions& options) {
  const Call call{Op::broadcast,     OpType::BROADCAST, "cais:broadcast",
                  is_async(options), options.timeout,   tensors};
  const at::Tensor& tensor = only(tensors, call.op);
  Elements elements;
  const Route route = route_to_move(OpKind::broadcast, tensor, &elements);
  if (route.path != Path::cais) {
    return delegate(call, route, bytes_of(tensors), [=](c10d::Backend& inner) mutable {
      return inner.broadcast(tensors, options);
    });
  }
  stats_->count(call.op, route, tensor.nbytes());
  Staging staging(call.async);
  // The root's memory is only read, but the collective has one pointer for both.
  void* data = options.rootRank == getRank() ? const_cast<void*>(staging.read(tensor))
                                             : staging.write(tensor);
  const Collective collective =
      describe(OpKind::broadcast, elements, tensor, 1, nullptr, data, options.rootRank);
  return launch(call, {&collective, 1}, std::move(staging), tensors);
}

CaisBackend::WorkPtr CaisBackend::allgather(TensorLists& outputs, Tensors& inputs,
                                            const c10d::AllgatherOptions& options) {
  const Call call{Op::all_gather,    OpType::ALLGATHER, "cais:all_gather",
                  is_async(options), options.timeout,   inputs};
  const at::Tensor& input = only(inputs, call.op);
  Elements elements;
  const Route route = route_to_move(OpKind::all_gather, input, &elements);
  if (route.path != Path::cais) {
    return delegate(call, route, bytes_of(inputs), [=](c10d::Backend& inner) mutable {
      return inner.allgather(outputs, inputs, options);
    });
  }
  if (outputs.size() != 1) refuse(call.op, "takes one list of output tensors");
  check_list(call.op, outputs.front(), input);
  stats_->count(call.op, route, input.nbytes());
  Staging staging(call.async);
  const Collective collective =
      describe(OpKind::all_gather, elements, input, getSize(), staging.read(input),
               staging.write(at::TensorList(outputs.front())));
  return launch(call, {&collective, 1}, std::move(staging), outputs.front());
}

CaisBackend::WorkPtr CaisBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                  const c10d::AllgatherOptions& options) {
  const Call call{Op::all_gather,    OpType::_ALLGATHER_BASE, "cais:_all_gather_base",
                  is_async(options), options.timeout,         input};
  Elements elements;
  const Route route = route_to_move(OpKind::all_gather, input, &elements);
  if (route.path != Path::cais) {
    return delegate(call, route, input.nbytes(), [=](c10d::Backend& inner) mutable {
      return inner._allgather_base(output, input, options);
    });
  }
  check_whole(call.op, output, input);
  stats_->count(call.op, route, input.nbytes());
  Staging staging(call.async);
  const Collective collective = describe(OpKind::all_gather, elements, input, getSize(),
                                         staging.read(input), staging.write(output));
  return launch(call, {&collective, 1}, std::move(staging), output);
}

CaisBackend::WorkPtr CaisBackend::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                                      const c10d::AllgatherOptions& options) {
  const Call call{Op::all_gather,    OpType::ALLGATHER_COALESCED,
                  "cais:all_gather", is_async(options),
                  options.timeout,   inputs};
  if (inputs.empty()) return done_;
  Elements elements;
  const Route route = route_to_move(OpKind::all_gather, inputs.front(), &elements);
  if (route.path != Path::cais) {
    return delegate(call, route, bytes_of(inputs), [=](c10d::Backend& inner) mutable {
      return inner.allgather_coalesced(outputs, inputs, options);
    });
  }
  if (outputs.size() != static_cast<std::size_t>(getSize())) {
    refuse(call.op, "the coalesced form takes one list of outputs for each rank");
  }
  stats_->count(call.op, route, bytes_of(inputs));
  Staging staging(call.async);
  std::vector<Collective> collectives;
  Tensors all_outputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensors from_each;  // outputs[rank][i]
    for (const Tensors& of_rank : outputs) from_each.push_back(of_rank.at(i));
    check_list(call.op, from_each, inputs[i]);
    Elements own;
    route_to_move(OpKind::all_gather, inputs[i], &own);
    collectives.push_back(describe(OpKind::all_gather, own, inputs[i], getSize(),
                                   staging.read(inputs[i]),
                                   staging.write(at::TensorList(from_each))));
    all_outputs.insert(all_outputs.end(), from_each.begin(), from_each.end());
  }
  return launch(call, collectives, std::move(staging), all_outputs);
}

CaisBackend::WorkPtr CaisBackend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  const Call call{Op::all_gather,    OpType::COALESCED, "cais:_all_gather_base",
                  is_async(options), options.timeout,   inputs};
  if (inputs.empty()) return done_;
  Elements elements;
  const Route route = route_to_move(OpKind::all_gather, inputs.front(), &elements);
  if (route.path != Path::cais) {
    return delegate(call, route, bytes_of(inputs), [=](c10d::Backend& inner) mutable {
      return inner.allgather_into_tensor_coalesced(outputs, inputs, options);
    });
  }
  if (outputs.size() != inputs.size()) refuse(call.op, "takes as many outputs as inputs");
  stats_->count(call.op, route, bytes_of(inputs));
  Staging staging(call.async);
  std::vector<Collective> collectives;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_whole(call.op, outputs[i], inputs[i]);
    Elements own;
    route_to_move(OpKind::all_gather, inputs[i], &own);
    collectives.push_back(describe(OpKind::all_gather, own, inputs[i], getSize(),
                                   staging.read(inputs[i]), staging.write(outputs[i])));
  }
  return launch(call, collectives, std::move(staging), outputs);
}

CaisBackend::WorkPtr CaisBackend::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                                 const c10d::ReduceScatterOptions& options) {
  const Call call{
      Op::reduce_scatter,    OpType::REDUCE_SCATTER,
      "cais:reduce_scatter", is_async(options),
      options.timeout,       inputs.empty() ? at::TensorList() : at::TensorList(inputs.front())};
  const at::Tensor& output = only(outputs, call.op);
  Elements elements;
  const Route route = route_to_reduce(OpKind::reduce_scatter, output, options.reduceOp, &elements);
  if (route.path != Path::cais) {
    return delegate_reduction(call, route, bytes_of(outputs), options.reduceOp, outputs,
                              [=](c10d::Backend& inner, const c10d::ReduceOp& op) mutable {
                                return inner.reduce_scatter(outputs, inputs, with_op(options, op));
                              });
  }
  if (inputs.size() != 1) refuse(call.op, "takes one list of input tensors");
  check_list(call.op, inputs.front(), output);
  stats_->count(call.op, route, bytes_of(inputs.front()));
  Staging staging(call.async);
  const Collective collective =
      describe(OpKind::reduce_scatter, elements, output, getSize(),
               staging.read(at::TensorList(inputs.front())), staging.write(output));
  return launch(call, {&collective, 1}, std::move(staging), outputs);
}

CaisBackend::WorkPtr CaisBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                       const c10d::ReduceScatterOptions& options) {
  const Call call{Op::reduce_scatter,
                  OpType::_REDUCE_SCATTER_BASE,
                  "cais:_reduce_scatter_base",
                  is_async(options),
                  options.timeout,
                  input};
  Elements elements;
  const Route route = route_to_reduce(OpKind::reduce_scatter, output, options.reduceOp, &elements);
  if (route.path != Path::cais) {
    return delegate_reduction(call, route, input.nbytes(), options.reduceOp, output,
                              [=](c10d::Backend& inner, const c10d::ReduceOp& op) mutable {
                                return inner._reduce_scatter_base(output, input,
                                                                  with_op(options, op));
                              });
  }
  check_whole(call.op, input, output);
  stats_->count(call.op, route, input.nbytes());
  Staging staging(call.async);
  const Collective collective = describe(OpKind::reduce_scatter, elements, output, getSize(),
                                         staging.read(input), staging.write(output));
  return launch(call, {&collective, 1}, std::move(staging), output);
}

CaisBackend::WorkPtr CaisBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  const Call call{Op::reduce_scatter,
                  op_type_of_coalesced_reduce_scatter(),
                  "cais:_reduce_scatter_base",
                  is_async(options),
                  options.timeout,
                  inputs};
  if (inputs.empty()) return done_;
  Elements elements;
  const Route route =
      route_to_reduce(OpKind::reduce_scatter, inputs.front(), options.reduceOp, &elements);
  if (route.path != Path::cais) {
    return delegate_reduction(call, route, bytes_of(inputs), options.reduceOp, outputs,
                              [=](c10d::Backend& inner, const c10d::ReduceOp& op) mutable {
                                return inner.reduce_scatter_tensor_coalesced(outputs, inputs,
                                                                             with_op(options, op));
                              });
  }
  if (outputs.size() != inputs.size()) refuse(call.op, "takes as many outputs as inputs");
  stats_->count(call.op, route, bytes_of(inputs));
  Staging staging(call.async);
  std::vector<Collective> collectives;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_whole(call.op, inputs[i], outputs[i]);
    if (inputs[i].scalar_type() != inputs.front().scalar_type()) {
      refuse(call.op, "all tensors of a coalesced reduce_scatter must have the same dtype");
    }
    collectives.push_back(describe(OpKind::reduce_scatter, elements, outputs[i], getSize(),
                                   staging.read(inputs[i]), staging.write(outputs[i])));
  }
  return launch(call, collectives, std::move(staging), outputs);
}

CaisBackend::WorkPtr CaisBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                std::vector<std::int64_t>& output_splits,
                                                std::vector<std::int64_t>& input_splits,
                                                const c10d::AllToAllOptions& options) {
  const Call call{Op::all_to_all,    OpType::ALLTOALL_BASE, "cais:all_to_all",
                  is_async(options), options.timeout,       input};
  Elements elements;
  Route route = route_to_move(OpKind::all_to_all, input, &elements);
  if (route.path == Path::cais && !(output_splits.empty() && input_splits.empty())) {
    route = {Path::gloo, Reason::split_sizes};
  }
  if (route.path != Path::cais) {
    return delegate(call, route, input.nbytes(), [=](c10d::Backend& inner) mutable {
      return inner.alltoall_base(output, input, output_splits, input_splits, options);
    });
  }
  if (input.numel() != output.numel() || input.scalar_type() != output.scalar_type() ||
      (input.dim() > 0 && input.size(0) % getSize() != 0) || input.numel() % getSize() != 0) {
    refuse(call.op, c10::str("without split sizes, input and output must be alike and their first "
                             "dim a multiple of ",
                             getSize(), "; they are ", input.scalar_type(), " ", input.sizes(),
                             " and ", output.scalar_type(), " ", output.sizes()));
  }
  stats_->count(call.op, route, input.nbytes());
  Staging staging(call.async);
  // Here the tensor is the whole, not a unit.
  Collective collective =
      describe(OpKind::all_to_all, elements, input, 1, staging.read(input), staging.write(output));
  collective.count /= static_cast<std::size_t>(getSize());
  collective.shard_dim = input.dim() > 0 ? 0 : -1;
  return launch(call, {&collective, 1}, std::move(staging), output);
}

CaisBackend::WorkPtr CaisBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                           const c10d::AllToAllOptions& options) {
  const Call call{Op::all_to_all,    OpType::ALLTOALL, "cais:all_to_all",
                  is_async(options), options.timeout,  inputs};
  Route route{Path::gloo, Reason::split_sizes};
  if (!inputs.empty() && inputs.front().is_cuda() && nccl_) route = {Path::nccl, Reason::cuda};
  return delegate(call, route, bytes_of(inputs), [=](c10d::Backend& inner) mutable {
    return inner.alltoall(outputs, inputs, options);
  });
}

CaisBackend::WorkPtr CaisBackend::gather(TensorLists& outputs, Tensors& inputs,
                                         const c10d::GatherOptions& options) {
  const Call call{Op::gather,        OpType::GATHER,  "cais:gather",
                  is_async(options), options.timeout, inputs};
  const at::Tensor& input = only(inputs, call.op);
  Elements elements;
  const Route route = route_to_move(OpKind::gather, input, &elements);
  if (route.path != Path::cais) {
    return delegate(call, route, bytes_of(inputs), [=](c10d::Backend& inner) mutable {
      return inner.gather(outputs, inputs, options);
    });
  }
  Staging staging(call.async);
  const void* send = staging.read(input);
  void* recv = nullptr;
  if (options.rootRank == getRank()) {
    if (outputs.size() != 1) refuse(call.op, "takes one list of output tensors at the root");
    check_list(call.op, outputs.front(), input);
    recv = staging.write(at::TensorList(outputs.front()));
  } else if (!outputs.empty() && !outputs.front().empty()) {
    refuse(call.op, "takes output tensors at the root only");
  }
  stats_->count(call.op, route, input.nbytes());
  const Collective collective =
      describe(OpKind::gather, elements, input, getSize(), send, recv, options.rootRank);
  return launch(call, {&collective, 1}, std::move(staging),
                recv != nullptr ? at::TensorList(outputs.front()) : at::TensorList());
}

CaisBackend::WorkPtr CaisBackend::scatter(Tensors& outputs, TensorLists& inputs,
                                          const c10d::ScatterOptions& options) {
  const Call call{
      Op::scatter,     OpType::SCATTER,
      "cais:scatter",  is_async(options),
      options.timeout, inputs.empty() ? at::TensorList() : at::TensorList(inputs.front())};
  const at::Tensor& output = only(outputs, call.op);
  Elements elements;
  const Route route = route_to_move(OpKind::scatter, output, &elements);
  if (route.path != Path::cais) {
    return delegate(call, route, bytes_of(outputs), [=](c10d::Backend& inner) mutable {
      return inner.scatter(outputs, inputs, options);
    });
  }
  Staging staging(call.async);
  const void* send = nullptr;
  if (options.rootRank == getRank()) {
    if (inputs.size() != 1) refuse(call.op, "takes one list of input tensors at the root");
    check_list(call.op, inputs.front(), output);
    send = staging.read(at::TensorList(inputs.front()));
  } else if (!inputs.empty() && !inputs.front().empty()) {
    refuse(call.op, "takes input tensors at the root only");
  }
  stats_->count(call.op, route, output.nbytes());
  const Collective collective = describe(OpKind::scatter, elements, output, getSize(), send,
                                         staging.write(output), options.rootRank);
  return launch(call, {&collective, 1}, std::move(staging), outputs);
}

CaisBackend::WorkPtr CaisBackend::barrier(const c10d::BarrierOptions& options) {
  const Call call{Op::barrier, OpType::BARRIER, "cais:barrier", is_async(options), options.timeout};
  const bool on_gpu = !options.device_ids.empty() || (options.device && options.device->is_cuda());
  if (nccl_ && on_gpu) {
    return delegate(call, {Path::nccl, Reason::cuda}, 0,
                    [=](c10d::Backend& inner) mutable { return inner.barrier(options); });
  }
  stats_->count(call.op, {}, 0);
  const Collective collective;
  return launch(call, {&collective, 1}, Staging(false), {});
}

CaisBackend::WorkPtr CaisBackend::send(Tensors& tensors, int to, int tag) {
  const Call call{Op::send, OpType::SEND, "cais:send", true, c10d::kUnsetTimeout};
  const bool on_gpu = nccl_ && only(tensors, call.op).is_cuda();
  return delegate(call, {on_gpu ? Path::nccl : Path::gloo, Reason::point_to_point},
                  bytes_of(tensors),
                  [=](c10d::Backend& inner) mutable { return inner.send(tensors, to, tag); });
}

CaisBackend::WorkPtr CaisBackend::recv(Tensors& tensors, int from, int tag) {
  const Call call{Op::recv, OpType::RECV, "cais:recv", true, c10d::kUnsetTimeout};
  const bool on_gpu = nccl_ && only(tensors, call.op).is_cuda();
  return delegate(call, {on_gpu ? Path::nccl : Path::gloo, Reason::point_to_point},
                  bytes_of(tensors),
                  [=](c10d::Backend& inner) mutable { return inner.recv(tensors, from, tag); });
}

CaisBackend::WorkPtr CaisBackend::recvAnysource(Tensors& tensors, int tag) {
  const Call call{Op::recv, OpType::RECVANYSOURCE, "cais:recv", true, c10d::kUnsetTimeout};
  return delegate(call, {Path::gloo, Reason::point_to_point}, bytes_of(tensors),
                  [=](c10d::Backend& inner) mutable { return inner.recvAnysource(tensors, tag); });
}

void CaisBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  stats_->count(Op::monitored_barrier, {Path::gloo, Reason::diagnosis}, 0);
  gloo_->monitoredBarrier(options, wait_all_ranks);
}

}  // namespace cais::pytorch
