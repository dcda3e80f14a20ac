// Scenarios of the switch: packets in from ranks (or from the switches below, and the parent),
// packets out, drops and events.
#include <algorithm>
#include <bit>
#include <deque>
#include <memory>

#include "core/switching/switch.hpp"
#include "tests/scenarios/script.hpp"
#include "tests/scenarios/switch_words.hpp"
#include "tests/wire/some_keys.hpp"

namespace cais::scenarios {
namespace {

constexpr SessionId session{7};
constexpr Epoch first_epoch{1};
constexpr std::uint64_t secret = 99;
constexpr switching::Port parent_port{100};

class SwitchStage final : public Stage {
 public:
  explicit SwitchStage(Words& words) {
    words.need("ranks");
    ranks_ = static_cast<std::uint16_t>(words.number());
    const std::int64_t window = words.take("window") ? words.number() : 4;
    first_ = Seq(words.take("first_seq") ? static_cast<std::uint32_t>(words.number()) : 0u);
    begin_ = LanePosition(first_);
    if (words.take("level")) place_.level = static_cast<std::uint8_t>(words.number());
    if (words.take("above")) {
      while (!words.empty() && !words.take("below")) {
        place_.children.push_back(read_ranks(words.word()));
      }
    }
    if (!words.empty()) {
      words.need("a");
      words.need("parent");
      place_.has_parent = true;
    }
    const auto opened =
        machine_.open({session, first_epoch, ranks_, 1, 1, static_cast<std::uint32_t>(window), 1024,
                       wire::keys_of(secret), first_, place_});
    if (!opened) throw Failure(opened.error().message);
    bind();
  }

  void step(Words words) override {
    if (words.take("op")) return op(words);
    if (words.take("define")) return define(find(words.word()));
    if (words.take("rank")) return packet_from_rank(words);
    if (words.take("parent")) return packet_from_parent(words);
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
  /// The ranks below the child that speaks for `rank`; none when that is not below this switch.
  switching::RankSet with(std::int64_t rank) const {
    for (const switching::RankSet below : place_.children) {
      if (rank < 64 && (below >> rank & 1) != 0) return below;
    }
    return place_.children.empty() && rank < ranks_ ? switching::RankSet{1} << rank : 0;
  }
  /// The port of a rank: of the switch that it is below, the least rank below that.
  std::int64_t speaker(std::int64_t rank) const {
    return with(rank) != 0 ? std::countr_zero(with(rank)) : rank;
  }

  void bind() {
    for (std::uint16_t r = 0; r < ranks_; ++r) {
      if (with(r) == 0) continue;
      const auto port = static_cast<std::uint32_t>(speaker(r));
      if (!machine_.bind(session, Rank(r), switching::Port(port))) throw Failure("cannot bind");
    }
    if (place_.has_parent && !machine_.bind_parent(session, parent_port)) {
      throw Failure("cannot bind the parent");
    }
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
    begin_ = LanePosition(from);
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
  /// [with a wrong tag]", "rank R wants seq S of ranks …", or "rank R asks seq S". Above level 1 it
  /// is the switch below that sends this, in the name of R; also "rank R tells mismatch seq S of
  /// ranks A B ops X Y".
  void packet_from_rank(Words& words) {
    finish();
    wire::Header header;
    header.session = session;
    header.epoch = epoch_;
    const std::int64_t rank = words.number();
    header.rank = Rank(static_cast<std::uint16_t>(rank));
    header.level = static_cast<std::uint8_t>(place_.level - 1);
    if (words.take("tells")) {
      words.need("mismatch");
      return told(words, header, speaker(rank));
    }
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
    put_place(op, fragment, header);
    auto payload = op.encode(values.value_or(std::vector<double>{}));
    if (wants) {
      const auto bitmap = wire::serialize(lacked);
      payload.assign(bitmap.begin(), bitmap.end());
    }
    std::int64_t port = speaker(rank);
    std::uint64_t whose = secret;
    while (!words.empty()) disturb(words, header, port, whose);
    receive(header, payload, port, whose);
  }

  /// "seq S of ranks A B ops X Y"
  void told(Words& words, wire::Header header, std::int64_t port) {
    words.need("seq");
    header.kind = wire::Kind::mismatch;
    header.seq = Seq(static_cast<std::uint32_t>(words.number()));
    words.need("of");
    words.need("ranks");
    wire::Mismatch what;
    what.first = Rank(static_cast<std::uint16_t>(words.number()));
    what.second = Rank(static_cast<std::uint16_t>(words.number()));
    words.need("ops");
    what.first_descriptor = header.descriptor = find(words.word()).hash;
    what.second_descriptor = find(words.word()).hash;
    receive(header, wire::serialize(what), port, secret);
  }

  /// "parent sends result|done|nak|waiting seq S [values] [of rank R] [finished] [x N] [for R…]
  /// [to rank R] [through port N] [in level N]", or "parent sends mismatch …" as above.
  void packet_from_parent(Words& words) {
    finish();
    words.need("sends");
    wire::Header header;
    header.session = session;
    header.epoch = epoch_;
    std::int64_t port = parent_port.value;
    if (words.take("mismatch")) return told(words, header, port);
    const std::string kind = words.word();
    for (const wire::Kind each :
         {wire::Kind::result, wire::Kind::done, wire::Kind::nak, wire::Kind::waiting}) {
      if (kind == to_string(each)) header.kind = each;
    }
    words.need("seq");
    header.seq = Seq(static_cast<std::uint32_t>(words.number()));
    const Op& op = ops_.back();
    put_place(op, std::min(op.fragment(header.seq), op.plan.fragments() - 1), header);
    std::vector<std::byte> payload;
    if (const auto values = words.values()) payload = op.encode(*values);
    if (header.kind == wire::Kind::result && op.plan.combine == nir::Combine::reduce) {
      header.flags = wire::flag_finished;
    }
    if (header.kind == wire::Kind::done || header.kind == wire::Kind::nak) header.chunk = 1;
    while (!words.empty()) detail_from_parent(words, header, payload, port);
    receive(header, payload, port, secret);
  }

  void receive(const wire::Header& header, std::span<const std::byte> payload, std::int64_t port,
               std::uint64_t whose) {
    std::vector<std::byte> packet(wire::header_bytes + payload.size());
    std::copy(payload.begin(), payload.end(), packet.begin() + wire::header_bytes);
    wire::serialize(header, payload, wire::keys_of(whose, header.epoch),
                    std::span(packet).first<wire::header_bytes>(), begin_.round_of(header.seq));
    receive(port, packet);
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
      const bool up = out.ports.size() == 1 && out.ports[0] == parent_port;
      const std::string ranks = up ? " parent" : " " + show(ranks_of(out));
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
    if (!readable || !wire::tag_is_right(packet, wire::keys_of(secret, header.epoch),
                                         begin_.round_of(header.seq))) {
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
    } else if (header.kind == wire::Kind::contribution) {
      line += (out.payload.empty() ? "" : " " + show(of(header.descriptor).decode(out.payload))) +
              " of rank " + std::to_string(header.rank.value);
      if ((header.flags & wire::flag_final) != 0) line += " final";
    } else if (wire::Want want; header.kind == wire::Kind::want && wire::parse(out.payload, want)) {
      if (want.ranks != 0) line += " of ranks " + show(ranks_in(want.ranks));
      line += " by rank " + std::to_string(header.rank.value);
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
  switching::TreePlace place_;
  Epoch epoch_ = first_epoch;
  Seq first_{};
  LanePosition begin_{Seq()};  // of the epoch
  std::vector<Op> ops_;
  std::deque<std::string> out_, events_;
  switching::Drop drop_ = switching::Drop::none;
};

}  // namespace

std::unique_ptr<Stage> make_switch_stage(Words& words) {
  return std::make_unique<SwitchStage>(words);
}

}  // namespace cais::scenarios
