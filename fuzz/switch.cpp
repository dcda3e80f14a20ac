// fuzz/switch.cpp — a switch under any list of operations: sessions that come and go and go on in
// other epochs, ranks, switches below and parents (P9) that know the keys and break every rule,
// strangers. I5, I8 and P20 hold after each; what is sent goes to bound ports, no larger than a
// fragment may be; but that there is no such session, to whoever asks.
#include "core/switching/switch.hpp"

#include <array>
#include <cstring>
#include <numeric>
#include <set>

#include "base/buffer.hpp"
#include "fuzz/operations.hpp"

using namespace cais;

namespace {

constexpr std::uint16_t sessions = 2;
constexpr std::uint32_t window = 4;
constexpr std::uint8_t lanes = 2;
constexpr std::size_t operations_max = 256;
constexpr std::size_t buffers = 32;
constexpr std::size_t buffer_bytes = 512;

class Bench {
 public:
  explicit Bench(fuzz::Operations in) : in_(in), pool_(buffers, buffer_bytes) {}

  void run() {
    for (std::size_t i = 0; i < operations_max && !in_.done(); ++i) {
      step();
      check();
    }
    drain();
    for (std::uint16_t i = 0; i < sessions; ++i) close(SessionId(i + 1));
    CAIS_CHECK(machine_.slots_in_use() == 0);
    CAIS_CHECK(pool_.free_count() == pool_.capacity());
  }

 private:
  static std::uint32_t number_of(SessionId session) { return 100 + session.value; }

  void step() {
    const SessionId session(1 + in_.below(sessions));
    switch (in_.below(10)) {
      case 0:
        return open(session);
      case 8:
        return change_epoch(session);
      case 1:
        (void)machine_.define(
            session,
            fuzz::ops()[in_.below(static_cast<std::uint32_t>(fuzz::ops().size()))].descriptor);
        return;
      case 2:
        return bind(session);
      case 3:
        return drain();
      case 4:
        if (in_.below(8) == 0) close(session);
        return;
      case 5:
        return receive(fuzz::packet_from(in_, session, in_.byte()));  // a stranger's tag
      default:
        return receive(fuzz::packet_from(in_, session, number_of(session), epochs_[session.value],
                                         from_[session.value]));
    }
  }

  /// Alone, or somewhere in a tree.
  switching::TreePlace place() {
    switch (in_.below(6)) {
      case 0:
        return {.level = 1, .has_parent = true, .children = {1, 2}};
      case 1:
        return {.level = 2, .has_parent = true, .children = {3}};
      case 2:
        return {.level = 2, .has_parent = false, .children = {5, 2}};
      default:
        return {};
    }
  }

  void change_epoch(SessionId session) {
    drain();
    Epoch& epoch = epochs_[session.value];
    const Epoch next(static_cast<std::uint16_t>(epoch.value + in_.below(3)));
    if (in_.below(2) == 0) {
      if (machine_.fence(session, next)) epoch = next;
      return;
    }
    const std::array from{Seq(in_.below(16)), Seq(in_.below(16))};
    if (machine_.resume(session, next, in_.below(5), from)) from_[session.value] = from;
  }

  void open(SessionId session) {
    const std::uint64_t served = in_.below(4);
    const Seq first(in_.below(2) == 0 ? 0 : 0xfffffff0);
    const auto opened =
        machine_.open({session, Epoch(1), fuzz::op_ranks, lanes, served, window,
                       fuzz::op_fragment_bytes, fuzz::keys_of(number_of(session)), first, place()});
    if (!opened) return;
    from_[session.value] = {first, first};
    open_.insert(session.value);
    epochs_[session.value] = Epoch(1);
  }
  void bind(SessionId session) {
    const switching::Port port(in_.below(8));
    const auto rank = in_.below<std::uint16_t>(5);
    const bool bound = rank < 4 ? machine_.bind(session, Rank(rank), port).ok()
                                : machine_.bind_parent(session, port).ok();
    if (bound) bound_.insert(port.value);
  }
  void close(SessionId session) {
    machine_.close(session);
    open_.erase(session.value);
  }

  /// Half of the packets come in a buffer that the switch may keep.
  void receive(const std::vector<std::byte>& bytes) {
    const switching::Port port(in_.below(8));
    Packet packet{bytes, in_.below(2) == 0 ? pool_.acquire() : BufferRef()};
    if (packet.owner) {
      std::memcpy(packet.owner.data(), bytes.data(), bytes.size());
      packet.bytes = {packet.owner.data(), bytes.size()};
    }
    (void)machine_.receive(port, std::move(packet));
  }

  void drain() {
    switching::Transmit out;
    while (machine_.poll_transmit(out)) {
      wire::Header header;
      CAIS_CHECK(out.header.size() == wire::header_bytes);
      CAIS_CHECK(out.payload.size() <= fuzz::op_fragment_bytes);
      CAIS_CHECK(wire::parse(out.header, header) == wire::ParseError::none);
      CAIS_CHECK(!out.ports.empty());
      if (header.kind == wire::Kind::no_session) {
        CAIS_CHECK(out.payload.empty());  // it may have been opened since
        continue;
      }
      for (const switching::Port port : out.ports) CAIS_CHECK(bound_.contains(port.value));
      std::vector<std::byte> packet(out.header.begin(), out.header.end());
      packet.insert(packet.end(), out.payload.begin(), out.payload.end());
      CAIS_CHECK(wire::tag_is_right(packet, fuzz::keys_of(number_of(header.session), header.epoch),
                                    fuzz::round_of(from_[header.session.value], header)));
    }
    switching::Event event;
    while (machine_.poll_event(event)) {
    }
  }

  void check() const {
    const switching::Counters& counters = machine_.counters();
    CAIS_CHECK(counters.received == std::accumulate(std::begin(counters.dropped),
                                                    std::end(counters.dropped),
                                                    counters.accepted));       // I8
    CAIS_CHECK(machine_.slots_in_use() <= open_.size() * lanes * 2 * window);  // I5
  }

  fuzz::Operations in_;
  BufferPool pool_;  // outlives the switch, which keeps buffers of it
  switching::Switch machine_;
  std::set<std::uint32_t> open_, bound_;
  std::array<Epoch, sessions + 1> epochs_{};                 // by session
  std::array<std::array<Seq, lanes>, sessions + 1> from_{};  // where their epochs began
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bench(fuzz::Operations(data, size)).run();
  return 0;
}
