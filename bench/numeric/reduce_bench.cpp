// Throughput of the reduction kernels. Arguments: ranks, and bytes per contribution.
//
//   results        bytes written per second, to one output
//   contributions  bits read and added per second, of all ranks
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "base/types.hpp"
#include "numeric/reduce.hpp"

namespace cais::numeric {
namespace {

struct Free {
  void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{4096}); }
};
using Memory = std::unique_ptr<std::byte[], Free>;

/// Moderate numbers whatever the type: random bits would be NaNs and denormals now and then.
Memory tensor(DType dtype, std::size_t bytes, Rng& rng) {
  Memory memory(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{4096})));
  for (std::size_t i = 0; i < bytes; ++i) memory[i] = static_cast<std::byte>(rng.next());
  const std::size_t size = size_of(dtype);
  const bool is_float = dtype == DType::float32 || dtype == DType::float64 || is_half(dtype);
  for (std::size_t i = size - 1; is_float && i < bytes; i += size) memory[i] = std::byte{0x3f};
  return memory;
}

void reduce(benchmark::State& state, Reduction reduction) {
  const auto ranks = static_cast<std::size_t>(state.range(0));
  const auto bytes = static_cast<std::size_t>(state.range(1));
  const std::size_t count = bytes / size_of(reduction.input);
  Rng rng(1);
  std::vector<Memory> memory;
  std::vector<const std::byte*> inputs;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    inputs.push_back(memory.emplace_back(tensor(reduction.input, bytes, rng)).get());
  }
  const Memory result = tensor(reduction.output, count * size_of(reduction.output), rng);
  std::byte* output = result.get();
  reduction.divisor = static_cast<std::uint32_t>(ranks);
  const Reducer reducer = *Reducer::find(reduction);
  for (auto _ : state) {
    reducer({&output, 1}, inputs, count);
    benchmark::ClobberMemory();
  }
  const auto per_iteration = [&](double amount) {
    return benchmark::Counter(amount, benchmark::Counter::kIsIterationInvariantRate);
  };
  const std::size_t result_bytes = count * size_of(reduction.output);
  state.counters["results"] = per_iteration(static_cast<double>(result_bytes));
  state.counters["contributions"] = per_iteration(static_cast<double>(8 * ranks * bytes));
  state.SetLabel(instruction_set());
}

void register_reductions() {
  const auto add = [](ReduceOp op, DType input, DType output, std::vector<std::int64_t> ranks,
                      std::vector<std::int64_t> bytes) {
    const std::string name = std::string(to_string(op)) + "/" + std::string(to_string(input)) +
                             "/" + std::string(to_string(output));
    benchmark::RegisterBenchmark(name.c_str(), reduce, Reduction{op, input, output, 1})
        ->ArgsProduct({std::move(ranks), std::move(bytes)})
        ->MinTime(0.05);
  };
  constexpr DType dtypes[] = {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                              DType::int8,    DType::uint8,   DType::int32,   DType::int64};
  for (const DType dtype : dtypes) {
    add(ReduceOp::sum, dtype, dtype, {2, 4, 8}, {64 << 10});
  }
  for (const ReduceOp op : {ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::product}) {
    for (const DType dtype : dtypes) add(op, dtype, dtype, {4}, {64 << 10});
  }
  for (const DType half : {DType::float16, DType::bfloat16}) {
    add(ReduceOp::sum, half, DType::float32, {4}, {64 << 10});
    add(ReduceOp::sum, DType::float32, half, {4}, {64 << 10});
  }
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    add(ReduceOp::sum, dtype, dtype, {2, 4, 8, 16, 64}, {16, 1 << 10, 8 << 10, 16 << 20});
  }
}

const bool registered = (register_reductions(), true);

}  // namespace
}  // namespace cais::numeric
