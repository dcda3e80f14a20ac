// What the tag of one packet costs, by the bytes of its payload (docs/threat-model.md).
//
//   tag/keyed, tag/checksum   of a whole packet, as it is checked when it comes in
//   digest/…                  of the payload alone: the part that grows with it
//   keys/new                  all keys of a session of 64 ranks
#include <benchmark/benchmark.h>

#include <vector>

#include "wire/digest.hpp"
#include "wire/header.hpp"

namespace cais::wire {
namespace {

Keys keys_of(Tags tags) { return Keys::of_session(tags, Secret{}, ranks_max, Epoch(1)); }

void tag(benchmark::State& state, Tags tags) {
  const Keys keys = keys_of(tags);
  const auto payload = static_cast<std::size_t>(state.range(0));
  std::vector<std::byte> packet(header_bytes + payload, std::byte{7});
  Header header;
  header.kind = Kind::contribution;
  header.session = SessionId(1);
  serialize(header, std::span(packet).subspan(header_bytes), keys,
            std::span(packet).first<header_bytes>());
  for (auto _ : state) {
    benchmark::ClobberMemory();
    benchmark::DoNotOptimize(tag_is_right(packet, keys));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
void sizes(benchmark::internal::Benchmark* each) {
  for (const int bytes : {0, 16, 64, 512, 1408, 8192}) each->Arg(bytes);
}
BENCHMARK_CAPTURE(tag, keyed, Tags::keyed)->Apply(sizes);
BENCHMARK_CAPTURE(tag, checksum, Tags::checksum)->Apply(sizes);

void keyed_digest(benchmark::State& state) {
  const Keys keys = keys_of(Tags::keyed);
  const std::vector<std::byte> payload(static_cast<std::size_t>(state.range(0)), std::byte{7});
  for (auto _ : state) {
    benchmark::ClobberMemory();
    benchmark::DoNotOptimize(payload_digest(payload, {}, keys.of_payloads()));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(keyed_digest)->Name("digest/keyed")->Apply(sizes);

void plain_digest(benchmark::State& state) {
  const std::vector<std::byte> payload(static_cast<std::size_t>(state.range(0)), std::byte{7});
  for (auto _ : state) {
    benchmark::ClobberMemory();
    benchmark::DoNotOptimize(digest(payload));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(plain_digest)->Name("digest/checksum")->Apply(sizes);

void new_keys(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(keys_of(Tags::keyed));
}
BENCHMARK(new_keys)->Name("keys/new");

}  // namespace
}  // namespace cais::wire
