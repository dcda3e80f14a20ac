// Throughput of the reduction kernels, and of copies. Arguments: ranks, and bytes per contribution.
//
//   results        bytes of results per second
//   contributions  bits read and added per second, of all ranks
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "base/types.hpp"
#include "numeric/copy.hpp"
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

/// Where results go: to a tensor of their own, the same past the cache, or to all ranks' tensors.
enum class To { output, output_streaming, all_inputs };

void reduce(benchmark::State& state, Reduction reduction, To to) {
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
  std::vector<std::byte*> outputs{result.get()};
  if (to == To::all_inputs) {
    outputs.clear();
    for (const Memory& input : memory) outputs.push_back(input.get());
  }
  reduction.divisor = static_cast<std::uint32_t>(ranks);
  const Reducer reducer = *Reducer::find(reduction);
  for (auto _ : state) {
    if (to == To::output_streaming) {
      reducer.stream(outputs, inputs, count);
    } else {
      reducer(outputs, inputs, count);
    }
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

template <typename Copy>
void copy(benchmark::State& state, Copy copy_bytes) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Rng rng(1);
  const Memory from = tensor(DType::uint8, bytes, rng), to = tensor(DType::uint8, bytes, rng);
  constexpr std::size_t chunk = 256 << 10;  // as a transport copies: memcpy never sees the whole
  for (auto _ : state) {
    for (std::size_t at = 0; at < bytes; at += chunk) {
      copy_bytes(to.get() + at, from.get() + at, std::min(chunk, bytes - at));
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void add(std::string name, const Reduction& reduction, std::vector<std::int64_t> ranks,
         std::vector<std::int64_t> bytes, To to = To::output) {
  name += "/" + std::string(to_string(reduction.op)) + "/" +
          std::string(to_string(reduction.input)) + "/" + std::string(to_string(reduction.output));
  benchmark::RegisterBenchmark(name.c_str(), reduce, reduction, to)
      ->ArgsProduct({std::move(ranks), std::move(bytes)})
      ->MinTime(0.02);
}

void register_benchmarks() {
  constexpr DType dtypes[] = {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                              DType::int8,    DType::uint8,   DType::int32,   DType::int64};
  for (const DType dtype : dtypes) {
    add("dtypes", {ReduceOp::sum, dtype, dtype, 1}, {2, 4, 8, 16}, {64 << 10});
  }
  for (const ReduceOp op : {ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::product}) {
    for (const DType dtype : dtypes) add("ops", {op, dtype, dtype, 1}, {4}, {8 << 10});
  }
  for (const DType half : {DType::float16, DType::bfloat16}) {
    add("partials", {ReduceOp::sum, half, DType::float32, 1}, {4}, {8 << 10});
    add("finals", {ReduceOp::sum, DType::float32, half, 1}, {4}, {8 << 10});
  }
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const Reduction sum{ReduceOp::sum, dtype, dtype, 1};
    add("small", sum, {2, 4, 8, 64}, {16, 256, 1 << 10});
    add("large", sum, {2, 4, 8}, {1 << 20, 16 << 20});
    add("large_streaming", sum, {2, 4, 8}, {1 << 20, 16 << 20}, To::output_streaming);
    add("in_place", sum, {2, 4, 8}, {64 << 10, 1 << 20, 16 << 20}, To::all_inputs);
  }
  for (const std::int64_t bytes : {1 << 20, 8 << 20, 32 << 20}) {
    benchmark::RegisterBenchmark("copy/memcpy", copy<decltype(&std::memcpy)>, &std::memcpy)
        ->Arg(bytes)
        ->MinTime(0.02);
    benchmark::RegisterBenchmark("copy/stream", copy<decltype(&copy_stream)>, &copy_stream)
        ->Arg(bytes)
        ->MinTime(0.02);
  }
}

const bool registered = (register_benchmarks(), true);

}  // namespace
}  // namespace cais::numeric
