// base/types.hpp — the words that every room shares: element types, reduce ops, collective kinds,
// and the strong integers that keep a rank from being taken for a lane.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cais {

/// An integer that mixes with no other kind of integer. `Tag` gives it its identity.
template <typename Tag, typename Rep>
struct Strong {
  Rep value{};
  constexpr Strong() = default;
  constexpr explicit Strong(Rep v) : value(v) {}
  constexpr auto operator<=>(const Strong&) const = default;
};

using SessionId = Strong<struct SessionIdTag, std::uint32_t>;  // 0 is never valid
using Epoch = Strong<struct EpochTag, std::uint16_t>;          // P15
using Lane = Strong<struct LaneTag, std::uint8_t>;             // [0, lanes of the session)
using Rank = Strong<struct RankTag, std::uint16_t>;            // [0, ranks of the group)
using DescriptorHash = Strong<struct DescriptorHashTag, std::uint64_t>;

/// Position of a fragment in a lane. It wraps: compare with `before` and `distance` only.
struct Seq {
  std::uint32_t value{};
  constexpr Seq() = default;
  constexpr explicit Seq(std::uint32_t v) : value(v) {}
  constexpr bool operator==(const Seq&) const = default;
  constexpr Seq operator+(std::uint32_t n) const { return Seq(value + n); }
  constexpr Seq operator-(std::uint32_t n) const { return Seq(value - n); }
};
/// How far `to` lies ahead of `from`; negative when it lies behind (serial arithmetic, RFC 1982).
constexpr std::int32_t distance(Seq from, Seq to) {
  return static_cast<std::int32_t>(to.value - from.value);
}
constexpr bool before(Seq a, Seq b) { return distance(a, b) > 0; }

/// How often the seqs of a lane have passed 2^32 since its epoch began. It is not on the wire; both
/// ends know it, and tags cover it (as the extended sequence numbers of RFC 4303).
using Round = Strong<struct RoundTag, std::uint32_t>;

/// Where a lane is in its epoch, counted beyond 32 bits.
class LanePosition {
 public:
  constexpr explicit LanePosition(Seq first) : count_(first.value) {}

  /// `seq` is the lane's newest unless it has been ahead of that.
  constexpr void advance(Seq seq) {
    const std::int32_t ahead = distance(low(), seq);
    if (ahead > 0) count_ += static_cast<std::uint32_t>(ahead);
  }
  /// Of a seq within 2^31 of the newest.
  constexpr Round round_of(Seq seq) const {
    const auto from_here = static_cast<std::int64_t>(distance(low(), seq));
    return Round(
        static_cast<std::uint32_t>((count_ + static_cast<std::uint64_t>(from_here)) >> 32));
  }

 private:
  constexpr Seq low() const { return Seq(static_cast<std::uint32_t>(count_)); }

  std::uint64_t count_;
};

inline constexpr std::size_t ranks_max = 64;  // a set of ranks is one 64-bit word

/// Element types. The `bytesN` are opaque: they are moved, never added.
enum class DType : std::uint8_t {
  float32 = 1,
  float64 = 2,
  float16 = 3,
  bfloat16 = 4,
  int8 = 5,
  uint8 = 6,
  int32 = 7,
  int64 = 8,
  bytes1 = 16,
  bytes2 = 17,
  bytes4 = 18,
  bytes8 = 19,
  bytes16 = 20,
};
/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::int8:
    case DType::uint8:
    case DType::bytes1:
      return 1;
    case DType::float16:
    case DType::bfloat16:
    case DType::bytes2:
      return 2;
    case DType::float32:
    case DType::int32:
    case DType::bytes4:
      return 4;
    case DType::float64:
    case DType::int64:
    case DType::bytes8:
      return 8;
    case DType::bytes16:
      return 16;
  }
  return 0;
}
constexpr bool is_opaque(DType dtype) { return dtype >= DType::bytes1; }
constexpr bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

enum class ReduceOp : std::uint8_t { none = 0, sum = 1, avg = 2, min = 3, max = 4, product = 5 };

enum class OpKind : std::uint8_t {
  all_reduce = 1,
  all_gather = 2,
  reduce_scatter = 3,
  broadcast = 4,
  reduce = 5,
  barrier = 6,
  all_to_all = 7,
  gather = 8,
  scatter = 9,
};

std::string_view to_string(DType dtype);
std::string_view to_string(ReduceOp op);
std::string_view to_string(OpKind kind);

/// The enumerator with that number, or nothing: for numbers that come from outside.
std::optional<DType> dtype_from(std::uint8_t code);
std::optional<ReduceOp> reduce_op_from(std::uint8_t code);
std::optional<OpKind> op_kind_from(std::uint8_t code);

/// The dtype, op or kind of that name ("bfloat16", "sum", "all_reduce"), or nothing.
std::optional<DType> dtype_named(std::string_view name);
std::optional<ReduceOp> reduce_op_named(std::string_view name);
std::optional<OpKind> op_kind_named(std::string_view name);

}  // namespace cais
