#include "sim/workload.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "nir/targets/host/lower.hpp"
#include "numeric/reduce.hpp"

namespace cais::sim {
namespace {

template <typename T>
void store(nir::TensorBytes& bytes, std::size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof value, &value, sizeof value);
}

constexpr std::size_t guard_bytes = 32;  // before and behind an output
constexpr std::byte untouched{0xee};

bool all_untouched(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == untouched; });
}

/// Where a rank's unit may lie in the other buffer, so that the op can work in place.
void place(Job& job, Rng& rng, OpKind kind, std::uint16_t rank) {
  const std::uint64_t unit = job.plan.unit_bytes;
  const bool in_place = rng.chance(0.5);
  std::byte* send = job.send[rank].data();
  std::byte* recv = job.recv[rank].data() + guard_bytes;
  if (kind == OpKind::broadcast && rank == job.plan.root) recv = send;
  if (kind == OpKind::all_reduce && in_place) recv = send;
  if (kind == OpKind::reduce_scatter && in_place) recv = send + rank * unit;
  if (kind == OpKind::all_gather && in_place && unit > 0) {
    std::memcpy(recv + rank * unit, send, unit);
    send = recv + rank * unit;
  }
  job.submits[rank].send = send;
  job.submits[rank].recv = recv;
}

/// P8: what the ranks below `which` come to. Partials are in the accumulator's type; the root alone
/// divides, and rounds.
nir::TensorBytes sum_below(const Job& job, const Tree& tree, std::size_t which) {
  const Tree::Node& node = tree.node(which);
  std::vector<nir::TensorBytes> parts;
  for (const std::size_t child : tree.switches_below(which)) {
    parts.push_back(sum_below(job, tree, child));
  }
  for (std::size_t r = 0; node.level == 1 && r < job.inputs.size(); ++r) {
    if ((node.members >> r & 1) != 0) parts.push_back(job.inputs[r]);
  }
  const nir::Plan& plan = job.plan;
  const bool root = !node.parent;
  numeric::Reduction reduction{.op = plan.reduce_op, .divisor = plan.ranks};
  if (!root && reduction.op == ReduceOp::avg) reduction.op = ReduceOp::sum;
  reduction.input = node.level == 1 ? plan.dtype : plan.accumulator;
  reduction.output = root ? plan.dtype : plan.accumulator;
  const std::size_t elements = parts[0].size() / size_of(reduction.input);
  nir::TensorBytes sum(elements * size_of(reduction.output));
  std::byte* out = sum.data();
  std::vector<const std::byte*> inputs;
  inputs.reserve(parts.size());
  for (const nir::TensorBytes& part : parts) inputs.push_back(part.data());
  CAIS_CHECK(numeric::reduce_reference(reduction, {&out, 1}, inputs, elements));
  return sum;
}

/// The reference adds in the order of the ranks; a tree adds below each switch first.
void sum_by_tree(Job& job, const Tree& tree) {
  const nir::TensorBytes sum = sum_below(job, tree, tree.root());
  for (std::size_t r = 0; r < job.expected.size(); ++r) {
    nir::TensorBytes& wanted = job.expected[r];
    if (wanted.empty()) continue;
    const std::size_t from = job.plan.deliver == nir::Deliver::owner ? r * wanted.size() : 0;
    CAIS_CHECK(from + wanted.size() <= sum.size());
    std::copy_n(sum.begin() + static_cast<std::ptrdiff_t>(from), wanted.size(), wanted.begin());
  }
}

}  // namespace

nir::TensorBytes random_tensor(Rng& rng, DType dtype, std::size_t elements) {
  nir::TensorBytes bytes(elements * size_of(dtype));
  for (std::size_t i = 0; i < elements; ++i) {
    // Sums of these are inexact in every float type, and finite in all.
    const double value = (static_cast<double>(rng.below(4001)) - 2000.0) / 700.0;
    switch (dtype) {
      case DType::float32:
        store(bytes, i, static_cast<float>(value));
        break;
      case DType::float64:
        store(bytes, i, value);
        break;
      case DType::float16:  // sign, exponent around 0, any mantissa
        store(bytes, i, static_cast<std::uint16_t>((rng.next() & 0x83ff) | 0x3c00));
        break;
      case DType::bfloat16:
        store(bytes, i, static_cast<std::uint16_t>((rng.next() & 0x807f) | 0x3f80));
        break;
      default:
        for (std::size_t b = 0; b < size_of(dtype); ++b) {
          bytes[i * size_of(dtype) + b] = static_cast<std::byte>(rng.next());
        }
    }
  }
  return bytes;
}

Job make_job(Rng& rng, const wire::DescriptorSpec& spec, std::uint64_t number, const Tree& tree) {
  Job job;
  const auto descriptor = wire::make_descriptor(spec);
  CAIS_CHECK(descriptor.ok());
  job.descriptor = *descriptor;
  const auto plan = nir::lower(job.descriptor);
  CAIS_CHECK(plan.ok());
  job.plan = *plan;
  const std::size_t elements = job.plan.unit_bytes / size_of(spec.dtype);
  for (std::uint16_t rank = 0; rank < spec.ranks; ++rank) {
    const bool loads = job.plan.combine != nir::Combine::route || rank == job.plan.root;
    job.inputs.push_back(random_tensor(rng, spec.dtype, loads ? elements * job.plan.units : 0));
  }
  job.send = job.inputs;
  const auto expected = nir::interpret(job.descriptor, job.inputs);
  CAIS_CHECK(expected.ok());
  job.expected = *expected;
  if (job.plan.reduce_op != ReduceOp::none) sum_by_tree(job, tree);
  job.recv.resize(spec.ranks);
  job.submits.resize(spec.ranks);
  for (std::uint16_t rank = 0; rank < spec.ranks; ++rank) {
    job.recv[rank].resize(job.expected[rank].size() + 2 * guard_bytes, untouched);
    job.submits[rank] = {number, wire::hash(job.descriptor), job.plan, nullptr, nullptr};
    place(job, rng, spec.kind, rank);
  }
  return job;
}

bool Job::right(std::uint16_t rank) const {
  const nir::TensorBytes& wanted = expected[rank];
  if (!wanted.empty() && std::memcmp(output(rank), wanted.data(), wanted.size()) != 0) return false;
  const std::span<const std::byte> around(recv[rank]);
  if (!all_untouched(around.first(guard_bytes)) || !all_untouched(around.last(guard_bytes))) {
    return false;
  }
  const nir::TensorBytes& sent = send[rank];
  const bool in_place =
      !sent.empty() && output(rank) >= sent.data() && output(rank) < sent.data() + sent.size();
  return in_place || sent == inputs[rank];
}

int Job::wrong_rank() const {
  for (std::uint16_t rank = 0; rank < plan.ranks; ++rank) {
    if (!right(rank)) return rank;
  }
  return -1;
}

wire::DescriptorSpec random_spec(Rng& rng, const Shape& shape) {
  static constexpr OpKind kinds[] = {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter,
                                     OpKind::broadcast,  OpKind::reduce,     OpKind::barrier,
                                     OpKind::all_to_all, OpKind::gather,     OpKind::scatter};
  static constexpr DType dtypes[] = {DType::float32,  DType::float64, DType::float16,
                                     DType::bfloat16, DType::int8,    DType::uint8,
                                     DType::int32,    DType::int64};
  static constexpr ReduceOp ops[] = {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max,
                                     ReduceOp::product};
  wire::DescriptorSpec spec;
  spec.kind = kinds[rng.below(std::size(kinds))];
  spec.dtype = dtypes[rng.below(std::size(dtypes))];
  if (wire::reduces(spec.kind)) spec.reduce_op = ops[rng.below(std::size(ops))];
  spec.ranks = shape.ranks;
  if (wire::has_root(spec.kind))
    spec.root = Rank(static_cast<std::uint16_t>(rng.below(shape.ranks)));
  spec.unit_elements = rng.chance(0.1) ? 0 : rng.below(shape.elements_max + 1);
  if (spec.kind == OpKind::barrier) spec.unit_elements = 0;
  spec.fragment_bytes = shape.payload_bytes_max;
  spec.chunk_bytes = 64 * 1024;
  spec.lanes = shape.lanes;
  return spec;
}

}  // namespace cais::sim
