// Scenarios of the switch: packets in from ranks, packets out to ranks, drops and events.
#include <algorithm>
#include <deque>
#include <memory>

#include "core/switching/switch.hpp"
#include "tests/scenarios/script.hpp"

namespace cais::scenarios {
namespace {

constexpr SessionId session{7};
constexpr Epoch first_epoch{1};
constexpr std::uint64_t tag_seed = 99;

class SwitchStage final : public Stage {
 public:
  explicit SwitchStage(Words& words) {
    words.need("ranks");
    ranks_ = static_cast<std::uint16_t>(words.number());
    const std::int64_t window = words.take("window") ? words.number() : 4;
    first_ = Seq(words.take("first_seq") ? static_cast<std::uint32_t>(words.number()) : 0u);
    const auto opened = machine_.open({session, first_epoch, ranks_, 1, 1,
                                       static_cast<std::uint32_t>(window), 1024, tag_seed, first_});
    if (!opened) throw Failure(opened.error().message);
    for (std::uint16_t r = 0; r < ranks_; ++r) bind(r);
  }

  void step(Words words) override {
    if (words.take("op")) return op(words);
    if (words.take("define")) return define(find(words.word()));
    if (words.take("rank")) return packet_from_rank(words);
    if (words.take("port")) return raw_packet(words);
    if (words.take("close")) return machine_.close(session);
    if (words.take("fence")) return fence(words, true);
    if (words.take("resume")) return resume(words);
    if (words.take("cannot")) {
      words.need("fence");
      return fence(words, false);
    }
    words.need("expect");
    expect(words);
  }

  void finish() override {
    if (!out_.empty()) throw Failure("unexpected at the end: " + out_.front());
    if (drop_ != switching::Drop::none) {
      throw Failure(std::string("unexpected drop: ") + to_string(drop_));
    }
  }

 private:
  void bind(std::uint16_t rank) {
    if (!machine_.bind(session, Rank(rank), switching::Port(rank))) throw Failure("cannot bind");
  }

  void fence(Words& words, bool can) {
    finish();
    words.need("epoch");
    const auto fenced = machine_.fence(session, Epoch(static_cast<std::uint16_t>(words.number())));
    if (fenced.ok() != can) throw Failure(can ? fenced.error().message : "it can");
  }

  void resume(Words& words) {
    words.need("epoch");
    const Epoch epoch(static_cast<std::uint16_t>(words.number()));
    words.need("at");
    const Seq from(static_cast<std::uint32_t>(words.number()));
    const auto resumed = machine_.resume(session, epoch, 1, {&from, 1});
    if (!resumed) throw Failure(resumed.error().message);
    epoch_ = epoch;
  }

  void op(Words& words) {
    ops_.push_back(read_op(words, ranks_, first_));
    if (!words.take("undefined")) define(ops_.back());
  }

  void define(const Op& op) {
    const auto defined = machine_.define(session, op.descriptor);
    if (!defined) throw Failure(defined.error().message);
  }

  const Op& find(const std::string& name) const {
    for (const Op& each : ops_) {
      if (each.name == name) return each;
    }
    throw Failure("no op named " + name);
  }

  /// "rank R sends|repeats seq S [values] [of OP] [in session|epoch|lane N] [through port N]
  /// [with a wrong tag]", "rank R wants seq S of ranks …", or "rank R asks seq S"
  void packet_from_rank(Words& words) {
    finish();
    wire::Header header;
    header.session = session;
    header.epoch = epoch_;
    const std::int64_t rank = words.number();
    header.rank = Rank(static_cast<std::uint16_t>(rank));
    const bool wants = words.take("wants") || words.take("asks");
    if (!wants && words.take("repeats")) {
      header.flags = wire::flag_repeat;
    } else if (!wants) {
      words.need("sends");
    }
    header.kind = wants ? wire::Kind::want : wire::Kind::contribution;
    words.need("seq");
    header.seq = Seq(static_cast<std::uint32_t>(words.number()));
    const auto values = words.values();
    wire::Want lacked{};
    if (wants && words.take("of")) {
      words.need("ranks");
      for (const std::int64_t r : words.numbers()) lacked.ranks |= 1ull << r;
    }
    const Op& op = words.take("of") ? find(words.word()) : ops_.back();
    // A seq outside the op has no place in its tensor; what is wrong with it is the seq.
    const std::uint32_t fragment = std::min(op.fragment(header.seq), op.plan.fragments() - 1);
    header.descriptor = op.hash;
    header.chunk = op.plan.chunk_of(fragment);
    header.offset = static_cast<std::uint32_t>(op.plan.extent(fragment).offset / wire::offset_step);
    auto payload = op.encode(values.value_or(std::vector<double>{}));
    if (wants) {
      const auto bitmap = wire::serialize(lacked);
      payload.assign(bitmap.begin(), bitmap.end());
    }
    std::int64_t port = rank;
    std::uint64_t seed = tag_seed;
    while (!words.empty()) disturb(words, header, port, seed);
    std::vector<std::byte> packet(wire::header_bytes + payload.size());
    std::copy(payload.begin(), payload.end(), packet.begin() + wire::header_bytes);
    wire::serialize(header, payload, seed, std::span(packet).first<wire::header_bytes>());
    receive(port, packet);
  }

  static void disturb(Words& words, wire::Header& header, std::int64_t& port, std::uint64_t& seed) {
    if (words.take("in")) {
      const std::string what = words.word();
      const std::int64_t value = words.number();
      if (what == "session") header.session = SessionId(static_cast<std::uint32_t>(value));
      if (what == "epoch") header.epoch = Epoch(static_cast<std::uint16_t>(value));
      if (what == "lane") header.lane = Lane(static_cast<std::uint8_t>(value));
      if (what == "chunk") header.chunk = static_cast<std::uint32_t>(value);
      if (what == "kind") header.kind = static_cast<wire::Kind>(value);
    } else if (words.take("final")) {
      header.flags |= wire::flag_final;
    } else if (words.take("through")) {
      words.need("port");
      port = words.number();
    } else {
      words.need("with");
      words.need("a");
      words.need("wrong");
      words.need("tag");
      seed ^= 1;
    }
  }

  /// "port P sends N bytes": N bytes of nothing.
  void raw_packet(Words& words) {
    finish();
    const std::int64_t port = words.number();
    words.need("sends");
    const std::vector<std::byte> packet(static_cast<std::size_t>(words.number()), std::byte{0x5a});
    receive(port, packet);
  }

  void receive(std::int64_t port, std::span<const std::byte> packet) {
    drop_ = machine_.receive(switching::Port(static_cast<std::uint32_t>(port)), {packet, {}});
    switching::Transmit out;
    while (machine_.poll_transmit(out)) {
      // One packet to several runs of ranks is one line.
      const std::string line = describe(out);
      const std::string ranks = " " + show(ranks_of(out));
      if (!out_.empty() && out_.back().starts_with(line + " to ")) {
        out_.back() += ranks;
      } else {
        out_.push_back(line + " to" + ranks);
      }
    }
    switching::Event event;
    while (machine_.poll_event(event)) events_.push_back(describe(event));
  }

  std::string describe(const switching::Transmit& out) const {
    std::vector<std::byte> packet(out.header.begin(), out.header.end());
    packet.insert(packet.end(), out.payload.begin(), out.payload.end());
    wire::Header header;
    const bool readable = wire::parse(packet, header) == wire::ParseError::none;
    if (readable && header.kind == wire::Kind::no_session && packet.size() == wire::header_bytes) {
      return "no_session seq " + std::to_string(header.seq.value);
    }
    if (!readable || !wire::tag_is_right(packet, tag_seed)) {
      throw Failure("the switch sent a packet that does not parse");
    }
    std::string line =
        std::string(to_string(header.kind)) + " seq " + std::to_string(header.seq.value);
    if (header.kind == wire::Kind::done || header.kind == wire::Kind::nak) {
      line += " x " + std::to_string(header.chunk);
    } else if (header.kind == wire::Kind::waiting) {
      line += " for " + show(ranks_in(wire::named_ranks(header)));
    } else if (header.kind == wire::Kind::result) {
      line += " " + show(of(header.descriptor).decode(out.payload));
      if (of(header.descriptor).plan.combine != nir::Combine::reduce) {
        line += " of rank " + std::to_string(header.rank.value);
        if ((header.flags & wire::flag_finished) != 0) line += " finished";
      }
    } else if (wire::Mismatch what; wire::parse(out.payload, what)) {
      line +=
          " of ranks " + std::to_string(what.first.value) + " " + std::to_string(what.second.value);
      line += " ops " + of(what.first_descriptor).name + " " + of(what.second_descriptor).name;
    }
    return line;
  }

  static std::vector<std::int64_t> ranks_of(const switching::Transmit& out) {
    std::vector<std::int64_t> ports;
    for (const switching::Port port : out.ports) ports.push_back(port.value);
    return ports;
  }

  const Op& of(DescriptorHash hash) const {
    for (const Op& each : ops_) {
      if (each.hash == hash) return each;
    }
    throw Failure("the switch sent the hash of no op");
  }

  static std::string describe(const switching::Event& event) {
    if (const auto* violation = std::get_if<switching::ViolationEvent>(&event)) {
      return "violation rank " + std::to_string(violation->rank.value) + " seq " +
             std::to_string(violation->seq.value);
    }
    const auto& mismatch = std::get<switching::MismatchEvent>(event);
    return "mismatch ranks " + std::to_string(mismatch.first.value) + " " +
           std::to_string(mismatch.second.value);
  }

  void expect(Words& words) {
    if (words.take("drop")) {
      const std::string reason = words.word();
      if (reason != to_string(drop_)) {
        throw Failure("expected drop " + reason + ", got " + to_string(drop_));
      }
      drop_ = switching::Drop::none;
      return;
    }
    if (words.take("nothing")) return finish();
    if (words.take("slots")) {
      const auto slots = static_cast<std::size_t>(words.number());
      if (machine_.slots_in_use() != slots) {
        throw Failure(std::to_string(machine_.slots_in_use()) + " slots are in use");
      }
      return;
    }
    const bool event = words.take("event");
    std::string line;
    while (!words.empty()) {
      const auto values = words.values();
      line += (line.empty() ? "" : " ") + (values ? show(*values) : words.word());
    }
    auto& queue = event ? events_ : out_;
    if (queue.empty()) throw Failure("expected '" + line + "', got nothing");
    if (queue.front() != line) {
      throw Failure("expected '" + line + "', got '" + queue.front() + "'");
    }
    queue.pop_front();
  }

  switching::Switch machine_;
  std::uint16_t ranks_ = 0;
  Epoch epoch_ = first_epoch;
  Seq first_{};
  std::vector<Op> ops_;
  std::deque<std::string> out_, events_;
  switching::Drop drop_ = switching::Drop::none;
};

}  // namespace

std::unique_ptr<Stage> make_switch_stage(Words& words) {
  return std::make_unique<SwitchStage>(words);
}

}  // namespace cais::scenarios
