// wire/header.hpp — the aggregation header: 40 bytes, network byte order, right behind UDP, in
// front of the payload. docs/wire.md draws it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "base/types.hpp"
#include "wire/keys.hpp"

namespace cais::wire {

inline constexpr std::uint8_t version = 1;

enum class Kind : std::uint8_t {
  contribution = 1,  // rank → switch: the rank's payload of a fragment
  result = 2,        // switch → rank: a sum, a shard or a routed payload
  done = 3,          // switch → rank: the fragment is finished and owes this rank no payload
  nak = 4,           // switch → rank: `seq` is the first missing one of your lane (P11)
  want = 5,          // rank → switch: a question; payload: Want (P2)
  mismatch = 6,      // switch → rank: the op is refused; payload: Mismatch (P12)
  waiting = 7,  // switch → rank: `seq` is not finished; names the ranks it lacks (P16); payload:
                // the stamp of the question, none when a repeated contribution is answered
  no_session = 8,  // switch → rank: there is no such session here (P16). The switch has no key for
                   // it: the question's own tag shows that this answers it
};

/// Whether ranks send it, to switches; the others come from switches, to ranks.
constexpr bool sent_by_rank(Kind kind) { return kind == Kind::contribution || kind == Kind::want; }

/// Bits of Header::flags.
inline constexpr std::uint8_t flag_repeat = 0x01;    // sent before; no RTT sample from its answer
inline constexpr std::uint8_t flag_finished = 0x02;  // of a result: every rank has contributed
inline constexpr std::uint8_t flag_final = 0x04;     // of a contribution: it is the result (P17)

struct Header {
  SessionId session{};     //  0: whose slots; never 0
  Seq seq{};               //  4: place in the lane; slot = seq mod 2W (P5)
  Epoch epoch{};           //  8: P15: packets of another epoch are dropped
  Rank rank{};             // 10: contribution, want: who sends; result: whose payload (concat,
                           //     route); waiting: who has asked
  Lane lane{};             // 12: [0, lanes of the session)
  Kind kind{};             // 13
  std::uint8_t flags = 0;  // 14
  std::uint8_t level = 0;  // 15: on the way up the sender's level in the tree [0, 15], 0 at the
                           //     ranks; on the way down 0. On the wire the low nibble, beside the
                           //     version in the high one
  DescriptorHash descriptor{};  // 16: which op this is (P12)
  std::uint32_t chunk = 0;      // 24: index of the chunk in the op; done, nak: how many fragments
                                //     from seq on; waiting: ranks 32 to 63, as a bitmap
  std::uint32_t offset = 0;     // 28: first byte of the payload in its unit, in steps of 8 bytes;
                                //     waiting: ranks 0 to 31
  std::uint64_t tag = 0;        // 32: of bytes [0, 32) and the payload (tag.hpp)
};

inline constexpr std::size_t header_bytes = 40;
inline constexpr std::uint8_t level_mask = 0x0f;                         // of the byte at level_at
inline constexpr std::size_t rank_at = 10, kind_at = 13, level_at = 15;  // bytes of the header
inline constexpr std::uint32_t offset_step = 8;  // bytes that Header::offset counts in
static_assert(header_bytes <= 48, "the promise of the wire format");
static_assert(header_bytes % 8 == 0, "the payload stays aligned for every dtype");

/// Why a packet was not parsed, or not accepted (P13). Each has its counter.
enum class ParseError : std::uint8_t { none, too_short, bad_version, bad_kind, zero_session };

/// Writes the 32 bytes before the tag, then the tag over them and the payload. `keys` hold the
/// sender's, who is the rank of the header or, by its kind, a switch. `round` is that of its seq.
void serialize(const Header& header, std::span<const std::byte> payload, const Keys& keys,
               std::span<std::byte, header_bytes> out, Round round = {});

/// The tag of a payload that lies in two pieces (data and padding).
void serialize(const Header& header, std::span<const std::byte> payload,
               std::span<const std::byte> padding, const Keys& keys,
               std::span<std::byte, header_bytes> out, Round round = {});

/// Reads a header. Any bytes may come in; nothing but ParseError comes of bad ones.
ParseError parse(std::span<const std::byte> packet, Header& out);

/// Whether the tag of a packet that `parse` accepted is right for header and payload, in this round
/// of its seq. No when `keys` do not hold the key of who it says has sent it.
bool tag_is_right(std::span<const std::byte> packet, const Keys& keys, Round round = {});

/// The ranks that a header of Kind::waiting names: bit r for rank r. They stand in the header, so
/// that the answer is no larger than what it answers (P13).
void name_ranks(Header& header, std::uint64_t ranks);
std::uint64_t named_ranks(const Header& header);

/// Says nothing to the switch, which gives it back in Kind::waiting: when the question was asked.
/// So the asker learns how long a way takes on which no rank is waited for.
using Stamp = std::uint64_t;
inline constexpr std::size_t stamp_bytes = 8;
std::array<std::byte, stamp_bytes> serialize(Stamp stamp);
/// False when the payload has another length.
bool parse(std::span<const std::byte> payload, Stamp& out);

/// Payload of Kind::want (P2): which ranks' payloads of the fragment the sender lacks; rank 0
/// stands for a sum. None: it only asks how the fragment stands (P16).
struct Want {
  std::uint64_t ranks = 0;  // 0: bit r: the payload of rank r
  Stamp stamp = 0;          // 8
};
inline constexpr std::size_t want_bytes = 16;
std::array<std::byte, want_bytes> serialize(const Want& want);
/// False when the payload has another length.
bool parse(std::span<const std::byte> payload, Want& out);

/// P16: the answer of a switch that has no such session to the header of a question: the same
/// header under Kind::no_session. It has no key; its tag is the digest of these bytes and the
/// question's own tag, which shows that nothing was changed on either way, and that the answer
/// comes from somebody who has seen the question. Believe no more than that: ask the management.
std::array<std::byte, header_bytes> deny(std::span<const std::byte, header_bytes> question);
/// Whether `answer`, a whole packet, is the denial of this question.
bool denies(std::span<const std::byte> answer, std::span<const std::byte, header_bytes> question);

/// Payload of Kind::mismatch (P12): the first two ranks that called different collectives.
struct Mismatch {
  Rank first{};                        //  0: whose descriptor was fixed for the slot
  Rank second{};                       //  2: who came with another one
                                       //  4: four bytes, zero
  DescriptorHash first_descriptor{};   //  8
  DescriptorHash second_descriptor{};  // 16
};
inline constexpr std::size_t mismatch_bytes = 24;
std::array<std::byte, mismatch_bytes> serialize(const Mismatch& mismatch);
/// False when the payload has another length or a rank is out of range.
bool parse(std::span<const std::byte> payload, Mismatch& out);

/// One line for logs and test scenarios: "contribution session 7 epoch 1 lane 0 seq 5 rank 2 …".
std::string to_string(const Header& header);
const char* to_string(Kind kind);
const char* to_string(ParseError error);

}  // namespace cais::wire
