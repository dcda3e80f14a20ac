// fuzz/agent.cpp — an agent under any list of operations: collectives, time, other epochs, and
// packets of a switch that breaks every rule. What it sends are packets of its session and epoch;
// what is done was submitted, in order; and every byte lies in a tensor of an op that is not done,
// or in what the agent keeps itself (the sanitizer sees to that).
#include "core/agent/agent.hpp"

#include <deque>

#include "fuzz/operations.hpp"

using namespace cais;

namespace {

constexpr std::uint64_t number = 78;  // of its keys
constexpr std::uint32_t window = 4;
constexpr std::uint8_t lanes = 2;
constexpr std::size_t operations_max = 256;
constexpr std::size_t collectives_max = 8;
constexpr SessionId session(1);

struct Tensors {
  std::vector<std::byte> send, recv;
};

class Bench {
 public:
  explicit Bench(fuzz::Operations in)
      : in_(in),
        from_(lanes, Seq(in_.below(2) == 0 ? 0 : 0xfffffff0)),
        agent_({.session = session,
                .epoch = epoch_,
                .rank = Rank(in_.below<std::uint16_t>(fuzz::op_ranks)),
                .ranks = fuzz::op_ranks,
                .lanes = lanes,
                .window_fragments = window,
                .keys = fuzz::keys_of(number),
                .first_seq = from_[0],
                .retains = in_.below(2) == 0}) {}

  void run() {
    for (std::size_t i = 0; i < operations_max && !in_.done(); ++i) step();
    transmit();
    take_events();
  }

 private:
  void step() {
    switch (in_.below(8)) {
      case 0:
        return submit();
      case 1:
        return transmit();
      case 2:
        now_ += std::chrono::microseconds(in_.byte()) * in_.byte();
        if (agent_.deadline() <= now_) agent_.timeout(now_);
        return;
      case 3:
        for (std::uint8_t lane = 0; lane < lanes; ++lane) (void)agent_.waits_for(Lane(lane));
        return take_events();
      case 4:
        if (in_.below(4) == 0) agent_.fence();
        return;
      case 5:
        return resume();
      default:
        return agent_.receive(
            now_, fuzz::packet_from(in_, session, in_.below(16) == 0 ? 1 : number, epoch_, from_));
    }
  }

  /// Somewhere around where it stands.
  void resume() {
    std::vector<Seq> from;
    for (std::uint8_t lane = 0; lane < lanes; ++lane) {
      from.push_back(agent_.first_unsettled(Lane(lane)) + 1 - in_.below(2 * window));
    }
    const Epoch next(static_cast<std::uint16_t>(epoch_.value + in_.below(3)));
    transmit();  // of the old epoch
    if (!agent_.resume(next, from)) return;
    CAIS_CHECK(next > epoch_);
    epoch_ = next;
    from_ = from;
  }

  void submit() {
    if (ended_ || submitted_ == collectives_max) return;
    const fuzz::Op& op = fuzz::ops()[in_.below(static_cast<std::uint32_t>(fuzz::ops().size()))];
    const std::size_t bytes = op.plan.unit_bytes * fuzz::op_ranks;
    Tensors& tensors = tensors_.emplace_back(
        Tensors{std::vector<std::byte>(bytes), std::vector<std::byte>(bytes)});
    agent_.submit({submitted_++, wire::hash(op.descriptor), op.plan, tensors.send.data(),
                   tensors.recv.data()});
  }

  void transmit() {
    agent::Transmit out;
    while (agent_.poll_transmit(now_, out)) {
      std::vector<std::byte> packet(out.header.begin(), out.header.end());
      packet.insert(packet.end(), out.payload.begin(), out.payload.end());
      packet.insert(packet.end(), out.padding.begin(), out.padding.end());
      wire::Header header;
      CAIS_CHECK(wire::parse(packet, header) == wire::ParseError::none);
      CAIS_CHECK(
          wire::tag_is_right(packet, fuzz::keys_of(number, epoch_), fuzz::round_of(from_, header)));
      CAIS_CHECK(header.session == session && header.lane == out.lane);
      CAIS_CHECK(header.epoch == epoch_);
      CAIS_CHECK(packet.size() <= wire::header_bytes + fuzz::op_fragment_bytes);
    }
  }

  void take_events() {
    agent::Event event;
    while (agent_.poll_event(event)) {
      if (const auto* done = std::get_if<agent::Done>(&event)) {
        CAIS_CHECK(!ended_ && done->op == done_++);
        tensors_[done->op] = {};
      } else if (const auto* bad = std::get_if<agent::Mismatched>(&event)) {
        CAIS_CHECK(!ended_ && bad->op < submitted_);
        ended_ = true;
      }
    }
    CAIS_CHECK(done_ <= submitted_);
    if (agent_.idle() && !ended_) CAIS_CHECK(done_ == submitted_);
  }

  fuzz::Operations in_;
  Epoch epoch_{1};
  std::vector<Seq> from_;  // where the epoch began, by lane
  agent::Agent agent_;
  Instant now_{};
  std::deque<Tensors> tensors_;
  std::uint64_t submitted_ = 0, done_ = 0;
  bool ended_ = false;  // by a mismatch
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bench(fuzz::Operations(data, size)).run();
  return 0;
}
