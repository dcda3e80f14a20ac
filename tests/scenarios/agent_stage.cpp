// Scenarios of the agent: what it sends, and what it makes of the switch's answers.
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>

#include "core/agent/agent.hpp"
#include "tests/scenarios/script.hpp"
#include "tests/wire/some_keys.hpp"

namespace cais::scenarios {
namespace {

constexpr SessionId session{7};
constexpr Epoch first_epoch{1};
constexpr std::uint64_t secret = 99;

/// An op that the agent runs, with its tensors: element i of `send` is i + 1.
struct Running {
  Op op;
  std::vector<std::byte> send, recv;
};

class AgentStage final : public Stage {
 public:
  explicit AgentStage(Words& words) {
    words.need("rank");
    const auto rank = Rank(static_cast<std::uint16_t>(words.number()));
    words.need("ranks");
    ranks_ = static_cast<std::uint16_t>(words.number());
    const std::int64_t window = words.take("window") ? words.number() : 4;
    agent::Config config{session,
                         epoch_,
                         rank,
                         ranks_,
                         1,
                         static_cast<std::uint32_t>(window),
                         wire::keys_of(secret)};
    config.retains = words.take("retains");
    machine_ = std::make_unique<agent::Agent>(config);
  }

  void step(Words words) override {
    if (words.take("op")) return op(words);
    if (words.take("switch")) return packet_from_switch(words);
    if (words.take("fence")) return machine_->fence();
    if (words.take("caller")) return write_over(words);
    if (words.take("resume")) return resume(words, true);
    if (words.take("cannot")) {
      words.need("resume");
      return resume(words, false);
    }
    if (words.take("after")) {
      finish();
      now_ += std::chrono::microseconds(words.number());
      words.need("us");
      if (machine_->deadline() <= now_) machine_->timeout(now_);
      return drain();
    }
    words.need("expect");
    expect(words);
  }

  void finish() override {
    if (!out_.empty()) throw Failure("unexpected at the end: " + out_.front());
  }

 private:
  void op(Words& words) {
    finish();
    Running& running = ops_.emplace_back();
    running.op = read_op(words, ranks_, next_);
    const nir::Plan& plan = running.op.plan;
    next_ = running.op.at + plan.fragments();
    std::vector<double> values;
    for (std::uint64_t i = 0; i < plan.units * plan.unit_bytes / size_of(plan.dtype); ++i) {
      values.push_back(static_cast<double>(i + 1));
    }
    running.send = running.op.encode(values);
    running.recv.resize(plan.unit_bytes * ranks_);
    machine_->submit(
        {ops_.size() - 1, running.op.hash, plan, running.send.data(), running.recv.data()});
    drain();
  }

  /// "caller writes over OP": it has its memory back.
  void write_over(Words& words) {
    words.need("writes");
    words.need("over");
    const std::string name = words.word();
    for (Running& each : ops_) {
      if (each.op.name != name) continue;
      std::fill(each.send.begin(), each.send.end(), std::byte{0x55});
      std::fill(each.recv.begin(), each.recv.end(), std::byte{0x55});
    }
  }

  void resume(Words& words, bool can) {
    finish();
    words.need("epoch");
    const Epoch epoch(static_cast<std::uint16_t>(words.number()));
    words.need("at");
    const Seq from(static_cast<std::uint32_t>(words.number()));
    const Result<void> resumed = machine_->resume(epoch, {&from, 1});
    if (resumed.ok() != can) throw Failure(can ? resumed.error().message : "it can");
    if (!can) return;
    epoch_ = epoch;
    begin_ = LanePosition(from);
    drain();
  }

  /// The op whose fragments reach over `seq`.
  const Running& at(Seq seq) const {
    for (const Running& each : ops_) {
      if (!before(seq, each.op.at) && each.op.fragment(seq) < each.op.plan.fragments()) return each;
    }
    throw Failure("no op is at seq " + std::to_string(seq.value));
  }

  /// "switch sends result|done|nak|waiting seq S [as OP] [values] [of rank R] [finished] [x N]
  /// [for R…] [asked N us ago] [in epoch E]"
  void packet_from_switch(Words& words) {
    finish();
    if (words.take("denies")) {
      words.need("seq");
      const auto answer = wire::deny(questions_.at(static_cast<std::uint32_t>(words.number())));
      machine_->receive(now_, answer);
      return drain();
    }
    words.need("sends");
    wire::Header header;
    header.session = session;
    header.epoch = epoch_;
    const std::string kind = words.word();
    header.kind = kind == "result"       ? wire::Kind::result
                  : kind == "done"       ? wire::Kind::done
                  : kind == "nak"        ? wire::Kind::nak
                  : kind == "waiting"    ? wire::Kind::waiting
                  : kind == "no_session" ? wire::Kind::no_session
                                         : wire::Kind::mismatch;
    words.need("seq");
    header.seq = Seq(static_cast<std::uint32_t>(words.number()));
    const Op& op = words.take("as") ? named(words.word()) : at(header.seq).op;
    header.descriptor = op.hash;
    std::vector<std::byte> payload;
    if (const auto values = words.values()) payload = op.encode(*values);
    if (words.take("of")) {
      words.need("rank");
      header.rank = Rank(static_cast<std::uint16_t>(words.number()));
    } else if (header.kind == wire::Kind::result) {
      header.flags = wire::flag_finished;
    }
    if (words.take("finished")) header.flags = wire::flag_finished;
    if (words.take("x")) header.chunk = static_cast<std::uint32_t>(words.number());
    if (words.take("for")) {
      std::uint64_t ranks = 0;
      for (const std::int64_t r : words.numbers()) ranks |= 1ull << r;
      wire::name_ranks(header, ranks);
    }
    if (words.take("asked")) {
      const Instant asked = now_ - std::chrono::microseconds(words.number());
      const auto stamp = wire::serialize(wire::Stamp(asked.time_since_epoch().count()));
      payload.assign(stamp.begin(), stamp.end());
      words.need("us");
      words.need("ago");
    }
    if (words.take("in")) {
      words.need("epoch");
      header.epoch = Epoch(static_cast<std::uint16_t>(words.number()));
    }
    if (header.kind == wire::Kind::mismatch) {
      const auto what = wire::serialize(wire::Mismatch{Rank(0), Rank(1), op.hash, {}});
      payload.assign(what.begin(), what.end());
    }
    std::vector<std::byte> packet(wire::header_bytes + payload.size());
    std::copy(payload.begin(), payload.end(), packet.begin() + wire::header_bytes);
    wire::serialize(header, payload, wire::keys_of(secret, header.epoch),
                    std::span(packet).first<wire::header_bytes>(), begin_.round_of(header.seq));
    machine_->receive(now_, packet);
    drain();
  }

  const Op& named(const std::string& name) const {
    for (const Running& each : ops_) {
      if (each.op.name == name) return each.op;
    }
    throw Failure("no op named " + name);
  }

  void drain() {
    agent::Transmit out;
    while (machine_->poll_transmit(now_, out)) out_.push_back(describe(out));
    agent::Event event;
    while (machine_->poll_event(event)) {
      if (const auto* done = std::get_if<agent::Done>(&event)) {
        out_.push_back("done " + ops_[done->op].op.name);
      } else if (const auto* bad = std::get_if<agent::Mismatched>(&event)) {
        out_.push_back("refused " + ops_[bad->op].op.name);
      } else {
        out_.push_back("no session");
      }
    }
  }

  std::string describe(const agent::Transmit& out) {
    std::vector<std::byte> packet(out.header.begin(), out.header.end());
    packet.insert(packet.end(), out.payload.begin(), out.payload.end());
    packet.insert(packet.end(), out.padding.begin(), out.padding.end());
    wire::Header header;
    if (wire::parse(packet, header) != wire::ParseError::none ||
        !wire::tag_is_right(packet, wire::keys_of(secret, header.epoch),
                            begin_.round_of(header.seq))) {
      throw Failure("the agent sent a packet that does not parse");
    }
    const std::string seq = " seq " + std::to_string(header.seq.value);
    if (header.kind == wire::Kind::want) {
      std::copy(out.header.begin(), out.header.end(), questions_[header.seq.value].begin());
      wire::Want want;
      wire::parse(out.payload, want);
      const std::vector<std::int64_t> lacked = ranks_in(want.ranks);
      return lacked.empty() ? "asks" + seq : "wants" + seq + " of ranks " + show(lacked);
    }
    const bool repeat = (header.flags & wire::flag_repeat) != 0;
    const bool final = (header.flags & wire::flag_final) != 0;
    // P2: byte for byte, the flag and with it the tag excepted.
    packet.erase(packet.begin(), packet.begin() + wire::header_bytes);
    if (repeat && first_sent_[header.seq.value] != packet) throw Failure("a repeat differs");
    first_sent_[header.seq.value] = packet;
    return (repeat ? "repeats" : "sends") + seq + " " + show(at(header.seq).op.decode(packet)) +
           (final ? " final" : "");
  }

  void expect(Words& words) {
    if (words.take("nothing")) return finish();
    if (words.take("waits")) return expect_wait(words);
    if (words.take("unsettled")) {
      const Seq first = machine_->first_unsettled(Lane(0));
      if (first.value != words.number()) {
        throw Failure("the first unsettled is " + std::to_string(first.value));
      }
      return;
    }
    if (words.take("output")) {
      const Op& op = named(words.word());
      const auto right = words.values().value_or(std::vector<double>{});
      auto got = op.decode(at(op.at).recv);
      got.resize(right.size());
      if (got != right) throw Failure("the output is " + show(got));
      return;
    }
    std::string line;
    while (!words.empty()) {
      const auto values = words.values();
      line += (line.empty() ? "" : " ") + (values ? show(*values) : words.word());
    }
    if (out_.empty()) throw Failure("expected '" + line + "', got nothing");
    if (out_.front() != line) throw Failure("expected '" + line + "', got '" + out_.front() + "'");
    out_.pop_front();
  }

  void expect_wait(Words& words) {
    const std::optional<std::uint64_t> held_up = machine_->waits_for(Lane(0));
    std::string got = "for nothing";
    if (held_up) got = *held_up == 0 ? "for an answer" : "for ranks " + show(ranks_in(*held_up));
    std::string line;
    while (!words.empty()) line += (line.empty() ? "" : " ") + words.word();
    if (line != got) throw Failure("the agent waits " + got + ", not " + line);
  }

  std::unique_ptr<agent::Agent> machine_;
  std::uint16_t ranks_ = 0;
  Instant now_{};
  Seq next_{};
  std::deque<Running> ops_;
  std::deque<std::string> out_;
  std::map<std::uint32_t, std::vector<std::byte>> first_sent_;
  std::map<std::uint32_t, std::array<std::byte, wire::header_bytes>> questions_;  // by seq
  Epoch epoch_ = first_epoch;
  LanePosition begin_{Seq()};  // of the epoch
};

}  // namespace

std::unique_ptr<Stage> make_agent_stage(Words& words) {
  return std::make_unique<AgentStage>(words);
}

}  // namespace cais::scenarios
