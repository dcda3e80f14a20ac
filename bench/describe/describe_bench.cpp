// What a collective costs before its first byte moves (S9 of docs/benchmarks.md).
//
//   descriptor/new      spec → 128 bytes and their hash
//   nir/cold            descriptor → IR → verified → plan
//   collective/new      both, as the plan cache does for a collective that it has not seen
//   collective/known    the plan cache's look-up: descriptor, hash and plan
#include <benchmark/benchmark.h>

#include <array>

#include "nir/targets/host/lower.hpp"
#include "runtime/plan_cache.hpp"
#include "wire/descriptor.hpp"

namespace cais {
namespace {

constexpr std::array<std::uint64_t, 2> shape{2048, 4096};

/// The article's example, a little wider each time: no two calls make the same descriptor.
wire::DescriptorSpec spec_of(std::span<const std::uint64_t> global_shape) {
  return {.kind = OpKind::all_reduce,
          .reduce_op = ReduceOp::sum,
          .dtype = DType::bfloat16,
          .ranks = 8,
          .unit_elements = global_shape[0] * global_shape[1],
          .shape = global_shape,
          .shard_dim = 1,
          .fragment_bytes = 8192,
          .lanes = 8,
          .group = 0x6d656d62657273};
}

void descriptor_new(benchmark::State& state) {
  auto growing = shape;
  for (auto _ : state) {
    growing[0] = 1 + growing[0] % 65'536;
    const auto made = wire::make_descriptor(spec_of(growing));
    benchmark::DoNotOptimize(wire::hash(made.value()));
  }
}
BENCHMARK(descriptor_new)->Name("descriptor/new");

void nir_cold(benchmark::State& state) {
  const auto descriptor = wire::make_descriptor(spec_of(shape)).value();
  for (auto _ : state) {
    auto plan = nir::lower(descriptor);
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK(nir_cold)->Name("nir/cold");

runtime::PlanCache cache() {
  return runtime::PlanCache(
      {.ranks = 8, .group = 1, .fragment_bytes = 8192, .chunk_bytes = 262'144, .lanes = 8});
}

runtime::Collective collective_of(std::span<const std::uint64_t> global_shape) {
  runtime::Collective collective;
  collective.kind = OpKind::all_reduce;
  collective.reduce_op = ReduceOp::sum;
  collective.dtype = DType::bfloat16;
  collective.count = global_shape[0] * global_shape[1];
  collective.dims = 2;
  collective.shard_dim = 1;
  collective.shape = {global_shape[0], global_shape[1]};
  return collective;
}

void collective_new(benchmark::State& state) {
  auto plans = cache();
  auto growing = shape;
  for (auto _ : state) {
    growing[0] = 1 + growing[0] % 65'536;
    benchmark::DoNotOptimize(plans.find(collective_of(growing)).value());
  }
}
BENCHMARK(collective_new)->Name("collective/new");

void collective_known(benchmark::State& state) {
  auto plans = cache();
  const auto collective = collective_of(shape);
  for (auto _ : state) benchmark::DoNotOptimize(plans.find(collective).value());
}
BENCHMARK(collective_known)->Name("collective/known");

}  // namespace
}  // namespace cais
