// fuzz/operations.hpp — a fuzzer's input as a list of operations: small numbers, taken byte by
// byte, and the small collectives that they choose from.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "fuzz/input.hpp"
#include "nir/targets/host/lower.hpp"
#include "wire/descriptor.hpp"
#include "wire/header.hpp"

namespace cais::fuzz {

/// Takes numbers off an input; zeros behind its end.
class Operations {
 public:
  Operations(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
  bool done() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const std::uint8_t value = rest_.front();
    rest_ = rest_.subspan(1);
    return value;
  }
  std::uint32_t word() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value = value << 8 | byte();
    return value;
  }
  /// [0, count)
  template <typename Number = std::uint32_t>
  Number below(std::uint32_t count) {
    return static_cast<Number>(byte() % count);
  }

 private:
  std::span<const std::uint8_t> rest_;
};

inline constexpr std::uint16_t op_ranks = 3;

/// Another session's for each number below 256; made once for each epoch.
inline const wire::Keys& keys_of(std::uint32_t number, Epoch epoch = Epoch(1)) {
  static std::map<std::pair<std::uint32_t, Epoch>, wire::Keys> made;
  wire::Keys& keys = made[{number, epoch}];
  if (!keys) {
    const wire::Secret secret{{static_cast<std::byte>(number)}};
    const wire::Tags tags = number % 2 == 0 ? wire::Tags::keyed : wire::Tags::checksum;
    keys = wire::Keys::of_session(tags, secret, op_ranks + 1, epoch);
  }
  return keys;
}

inline constexpr std::uint32_t op_fragment_bytes = 32;

struct Op {
  wire::CommDescriptor descriptor;
  nir::Plan plan;
};

/// One collective of each kind, of a few fragments, in two lanes where it is large enough.
inline const std::vector<Op>& ops() {
  static const std::vector<Op> all = [] {
    std::vector<Op> made;
    for (std::uint8_t kind = 1; op_kind_from(kind); ++kind) {
      wire::DescriptorSpec spec;
      spec.kind = *op_kind_from(kind);
      spec.reduce_op = wire::reduces(spec.kind) ? ReduceOp::sum : ReduceOp::none;
      spec.dtype = DType::int32;
      spec.ranks = op_ranks;
      spec.unit_elements = 20;
      spec.fragment_bytes = op_fragment_bytes;
      spec.lanes = 2;
      const auto descriptor = wire::make_descriptor(spec);
      CAIS_CHECK(descriptor.ok());
      const auto plan = nir::lower(*descriptor);
      CAIS_CHECK(plan.ok());
      made.push_back({*descriptor, *plan});
    }
    return made;
  }();
  return all;
}

/// The round of a seq in an epoch that began at `from`, by lane.
inline Round round_of(std::span<const Seq> from, const wire::Header& header) {
  const std::size_t lane = header.lane.value;
  return lane < from.size() ? LanePosition(from[lane]).round_of(header.seq) : Round();
}

/// A packet whose tag is right under keys of that number; what it says comes from the input, near
/// to what makes sense. `from`: where the epoch began, by lane.
inline std::vector<std::byte> packet_from(Operations& in, SessionId session, std::uint32_t keys,
                                          Epoch epoch = Epoch(1), std::span<const Seq> from = {}) {
  const Op& op = ops()[in.below(static_cast<std::uint32_t>(ops().size()))];
  const std::uint32_t fragment = in.below(op.plan.fragments());
  const std::uint8_t oddities = in.byte();  // a bit for each field that is anything
  wire::Header header;
  header.session = session;
  header.epoch = (oddities & 1) != 0 ? Epoch(in.below<std::uint16_t>(3)) : epoch;
  header.kind = static_cast<wire::Kind>(1 + in.below(8));
  header.rank = Rank(in.below<std::uint16_t>(op_ranks + 1));
  header.lane = Lane(in.below<std::uint8_t>(3));
  header.seq = Seq((oddities & 2) != 0 ? in.word() : in.below(24));
  header.flags = in.below<std::uint8_t>(8);
  if ((oddities & 64) != 0) header.level = in.below<std::uint8_t>(3);
  header.descriptor = wire::hash(op.descriptor);
  header.chunk = (oddities & 4) != 0 ? in.word() : op.plan.chunk_of(fragment);
  header.offset =
      (oddities & 8) != 0
          ? in.word()
          : static_cast<std::uint32_t>(op.plan.extent(fragment).offset / wire::offset_step);
  std::size_t payload_bytes = op.plan.fragment_bytes;
  if (header.kind == wire::Kind::want) payload_bytes = wire::want_bytes;
  if (header.kind == wire::Kind::mismatch) payload_bytes = wire::mismatch_bytes;
  if (header.kind > wire::Kind::result && header.kind != wire::Kind::want &&
      header.kind != wire::Kind::mismatch) {
    payload_bytes = 0;
  }
  if ((oddities & 16) != 0) payload_bytes = in.byte();
  if ((oddities & 32) != 0) payload_bytes = 0;
  std::vector<std::byte> packet(wire::header_bytes + payload_bytes);
  for (std::size_t i = wire::header_bytes; i < packet.size(); ++i) packet[i] = std::byte{in.byte()};
  wire::serialize(header, std::span(packet).subspan(wire::header_bytes), keys_of(keys, epoch),
                  std::span(packet).first<wire::header_bytes>(), round_of(from, header));
  return packet;
}

}  // namespace cais::fuzz
