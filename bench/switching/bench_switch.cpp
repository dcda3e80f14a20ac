// S5a: how much one core of the software switch adds, in memory. Ranks in lock-step fill receive
// buffers with trains of contributions, as GRO hands them over; the switch checks every tag, sums,
// and makes the results. Only its own calls are timed. The sums are checked.
//
//   bench_switch [seconds per configuration [keyed|checksum]]   one line of JSON for each one
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/buffer.hpp"
#include "base/check.hpp"
#include "core/switching/switch.hpp"
#include "nir/targets/host/lower.hpp"
#include "numeric/reduce.hpp"

namespace cais::switching {
namespace {

constexpr std::uint32_t window_fragments = 64;
constexpr std::size_t train_bytes_max = 65'487;
constexpr std::size_t receive_buffer_bytes = 65'536;

struct Load {
  std::uint16_t ranks;
  std::uint32_t fragment_bytes;
  DType dtype;
  wire::Tags tags;
};

/// Contributions of all ranks to the next fragments, in the buffers that they would come in.
class Ranks {
 public:
  Ranks(const Load& load, const wire::CommDescriptor& descriptor, const nir::Plan& plan,
        const wire::Keys& keys)
      : load_(load), plan_(plan), hash_(wire::hash(descriptor)), keys_(keys) {}

  std::uint32_t train_packets() const {
    const std::size_t packet = load_.fragment_bytes + wire::header_bytes;
    return std::min<std::uint32_t>(static_cast<std::uint32_t>(train_bytes_max / packet), 32);
  }

  /// The train of `rank` from `seq` on.
  void fill(std::byte* buffer, Rank rank, Seq seq) const {
    const std::size_t packet = load_.fragment_bytes + wire::header_bytes;
    for (std::uint32_t i = 0; i < train_packets(); ++i) {
      const std::uint32_t fragment = (seq.value + i) % plan_.fragments();
      wire::Header header;
      header.session = SessionId(1);
      header.epoch = Epoch(1);
      header.rank = rank;
      header.seq = seq + i;
      header.kind = wire::Kind::contribution;
      header.descriptor = hash_;
      header.chunk = plan_.chunk_of(fragment);
      header.offset = static_cast<std::uint32_t>(plan_.extent(fragment).offset / wire::offset_step);
      std::byte* at = buffer + i * packet;
      fill_payload(at + wire::header_bytes, rank);
      wire::serialize(header, {at + wire::header_bytes, load_.fragment_bytes}, keys_,
                      std::span<std::byte, wire::header_bytes>(at, wire::header_bytes));
    }
  }

  /// rank + 1 in every element, so that the sum is ranks (ranks + 1) / 2: exact in bfloat16 too.
  void fill_payload(std::byte* at, Rank rank) const {
    if (load_.dtype == DType::float32) {
      const float value = static_cast<float>(rank.value + 1);
      for (std::size_t i = 0; i < load_.fragment_bytes; i += 4) std::memcpy(at + i, &value, 4);
      return;
    }
    const std::uint16_t value = bfloat16(static_cast<float>(rank.value + 1));
    for (std::size_t i = 0; i < load_.fragment_bytes; i += 2) std::memcpy(at + i, &value, 2);
  }

  bool sum_is_right(std::span<const std::byte> payload) const {
    const auto ranks = load_.ranks;
    const float sum = static_cast<float>(ranks * (ranks + 1) / 2);
    for (std::size_t i = 0; i < payload.size(); i += size_of(load_.dtype)) {
      if (load_.dtype == DType::float32) {
        float value;
        std::memcpy(&value, payload.data() + i, 4);
        if (value != sum) return false;
      } else {
        std::uint16_t value;
        std::memcpy(&value, payload.data() + i, 2);
        if (value != bfloat16(sum)) return false;
      }
    }
    return payload.size() == load_.fragment_bytes;
  }

 private:
  static std::uint16_t bfloat16(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<std::uint16_t>(bits >> 16);
  }
  Load load_;
  nir::Plan plan_;
  DescriptorHash hash_;
  wire::Keys keys_;
};

/// Gigabits of contributions per second of the switch's time.
double measure(const Load& load, double seconds) {
  wire::DescriptorSpec spec;
  spec.kind = OpKind::all_reduce;
  spec.reduce_op = ReduceOp::sum;
  spec.dtype = load.dtype;
  spec.ranks = load.ranks;
  spec.unit_elements = (4u << 20) / size_of(load.dtype);
  spec.fragment_bytes = load.fragment_bytes;
  const auto descriptor = wire::make_descriptor(spec);
  const auto plan = nir::lower(*descriptor);
  const wire::Keys keys = wire::Keys::of_session(load.tags, wire::Secret{}, load.ranks, Epoch(1));
  const Ranks ranks(load, *descriptor, *plan, keys);

  BufferPool pool(4u * load.ranks, receive_buffer_bytes);
  Switch machine;
  CAIS_CHECK(machine
                 .open({SessionId(1), Epoch(1), load.ranks, 1, 1, window_fragments,
                        load.fragment_bytes, keys})
                 .ok());
  CAIS_CHECK(machine.define(SessionId(1), *descriptor).ok());
  for (std::uint16_t r = 0; r < load.ranks; ++r) {
    CAIS_CHECK(machine.bind(SessionId(1), Rank(r), Port(r)).ok());
  }
  using Clock = std::chrono::steady_clock;
  const std::size_t packet = load.fragment_bytes + wire::header_bytes;
  Clock::duration spent{0};
  std::uint64_t bytes = 0;
  std::uint64_t checked = 0;
  for (Seq seq; spent < std::chrono::duration<double>(seconds); seq = seq + ranks.train_packets()) {
    for (std::uint16_t r = 0; r < load.ranks; ++r) {
      Packet train;
      train.owner = pool.acquire();
      CAIS_CHECK(train.owner);
      ranks.fill(train.owner.data(), Rank(r), seq);
      const auto begin = Clock::now();
      for (std::uint32_t i = 0; i < ranks.train_packets(); ++i) {
        const Drop drop =
            machine.receive(Port(r), {{train.owner.data() + i * packet, packet}, train.owner});
        CAIS_CHECK(drop == Drop::none);
      }
      Transmit out;
      std::span<const std::byte> last;
      while (machine.poll_transmit(out)) last = out.payload;
      spent += Clock::now() - begin;
      bytes += ranks.train_packets() * load.fragment_bytes;
      if (last.empty()) continue;
      CAIS_CHECK(ranks.sum_is_right(last));
      ++checked;
    }
  }
  CAIS_CHECK(checked > 0);
  return static_cast<double>(bytes) * 8e-9 / std::chrono::duration<double>(spent).count();
}

}  // namespace
}  // namespace cais::switching

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.5;
  const std::string_view tags = argc > 2 ? argv[2] : "keyed";
  using cais::DType;
  const auto kind = tags == "checksum" ? cais::wire::Tags::checksum : cais::wire::Tags::keyed;
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    for (const std::uint32_t fragment_bytes : {1024u, 8192u}) {
      for (const std::uint16_t ranks : std::initializer_list<std::uint16_t>{2, 4, 8, 16}) {
        const double gigabits =
            cais::switching::measure({ranks, fragment_bytes, dtype, kind}, seconds);
        std::printf(
            "{\"bench\": \"S5a\", \"tags\": \"%s\", \"dtype\": \"%s\", \"ranks\": %u, "
            "\"fragment_bytes\": %u, \"gigabits_per_s\": %.1f, \"kernels\": \"%s\"}\n",
            kind == cais::wire::Tags::keyed ? "keyed" : "checksum",
            std::string(to_string(dtype)).c_str(), ranks, fragment_bytes, gigabits,
            cais::numeric::instruction_set());
        std::fflush(stdout);
      }
    }
  }
}
