#include "wire/header.hpp"

#include <algorithm>
#include <sstream>

#include "base/check.hpp"
#include "wire/bytes.hpp"
#include "wire/digest.hpp"
#include "wire/tag.hpp"

namespace cais::wire {
namespace {

constexpr std::size_t tag_offset = tagged_header_bytes;
static_assert(tag_offset + sizeof(std::uint64_t) == header_bytes);

constexpr unsigned version_shift = 4;

void write_fields(const Header& header, std::byte* out) {
  store_network(out, header.session.value);
  store_network(out + 4, header.seq.value);
  store_network(out + 8, header.epoch.value);
  store_network(out + rank_at, header.rank.value);
  store_network(out + 12, header.lane.value);
  store_network(out + kind_at, static_cast<std::uint8_t>(header.kind));
  store_network(out + 14, header.flags);
  store_network(out + level_at,
                static_cast<std::uint8_t>(version << version_shift | (header.level & level_mask)));
  store_network(out + 16, header.descriptor.value);
  store_network(out + 24, header.chunk);
  store_network(out + 28, header.offset);
}

}  // namespace

void serialize(const Header& header, std::span<const std::byte> payload, const Keys& keys,
               std::span<std::byte, header_bytes> out, Round round) {
  serialize(header, payload, {}, keys, out, round);
}

void serialize(const Header& header, std::span<const std::byte> payload,
               std::span<const std::byte> padding, const Keys& keys,
               std::span<std::byte, header_bytes> out, Round round) {
  write_fields(header, out.data());
  const auto tag = tag_of(out.first<tag_offset>(), payload, padding, keys, round);
  CAIS_CHECK(tag.has_value());
  store_network(out.data() + tag_offset, *tag);
}

ParseError parse(std::span<const std::byte> packet, Header& out) {
  if (packet.size() < header_bytes) return ParseError::too_short;
  const std::byte* in = packet.data();
  const auto version_and_level = load_network<std::uint8_t>(in + level_at);
  if (version_and_level >> version_shift != version) return ParseError::bad_version;
  const auto kind = load_network<std::uint8_t>(in + kind_at);
  if (kind < static_cast<std::uint8_t>(Kind::contribution) ||
      kind > static_cast<std::uint8_t>(Kind::no_session)) {
    return ParseError::bad_kind;
  }
  const SessionId session(load_network<std::uint32_t>(in));
  if (session == SessionId(0)) return ParseError::zero_session;
  out.session = session;
  out.seq = Seq(load_network<std::uint32_t>(in + 4));
  out.epoch = Epoch(load_network<std::uint16_t>(in + 8));
  out.rank = Rank(load_network<std::uint16_t>(in + rank_at));
  out.lane = Lane(load_network<std::uint8_t>(in + 12));
  out.kind = static_cast<Kind>(kind);
  out.flags = load_network<std::uint8_t>(in + 14);
  out.level = version_and_level & level_mask;
  out.descriptor = DescriptorHash(load_network<std::uint64_t>(in + 16));
  out.chunk = load_network<std::uint32_t>(in + 24);
  out.offset = load_network<std::uint32_t>(in + 28);
  out.tag = load_network<std::uint64_t>(in + tag_offset);
  return ParseError::none;
}

bool tag_is_right(std::span<const std::byte> packet, const Keys& keys, Round round) {
  if (packet.size() < header_bytes) return false;
  const auto tag =
      tag_of(packet.first<tag_offset>(), packet.subspan(header_bytes), {}, keys, round);
  // Two words, compared at once: how long it takes does not tell how many bits were guessed.
  return tag && *tag == load_network<std::uint64_t>(packet.data() + tag_offset);
}

std::array<std::byte, header_bytes> deny(std::span<const std::byte, header_bytes> question) {
  std::array<std::byte, header_bytes> answer;
  std::copy(question.begin(), question.end(), answer.begin());
  answer[kind_at] = static_cast<std::byte>(Kind::no_session);
  store_network(answer.data() + tag_offset, digest(answer));
  return answer;
}

bool denies(std::span<const std::byte> answer, std::span<const std::byte, header_bytes> question) {
  const auto denial = deny(question);
  return std::equal(answer.begin(), answer.end(), denial.begin(), denial.end());
}

void name_ranks(Header& header, std::uint64_t ranks) {
  header.chunk = static_cast<std::uint32_t>(ranks >> 32);
  header.offset = static_cast<std::uint32_t>(ranks);
}

std::uint64_t named_ranks(const Header& header) {
  return std::uint64_t{header.chunk} << 32 | header.offset;
}

std::string to_string(const Header& header) {
  std::ostringstream line;
  line << to_string(header.kind) << " session " << header.session.value << " epoch "
       << header.epoch.value << " lane " << unsigned{header.lane.value} << " seq "
       << header.seq.value << " rank " << header.rank.value << " level " << unsigned{header.level}
       << " chunk " << header.chunk << " offset " << std::uint64_t{header.offset} * offset_step
       << " op " << std::hex << header.descriptor.value;
  if ((header.flags & flag_repeat) != 0) line << " repeat";
  if ((header.flags & flag_finished) != 0) line << " finished";
  if ((header.flags & flag_final) != 0) line << " final";
  return line.str();
}

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::contribution:
      return "contribution";
    case Kind::result:
      return "result";
    case Kind::done:
      return "done";
    case Kind::nak:
      return "nak";
    case Kind::want:
      return "want";
    case Kind::mismatch:
      return "mismatch";
    case Kind::waiting:
      return "waiting";
    case Kind::no_session:
      return "no_session";
  }
  return "unknown";
}

const char* to_string(ParseError error) {
  switch (error) {
    case ParseError::none:
      return "none";
    case ParseError::too_short:
      return "too_short";
    case ParseError::bad_version:
      return "bad_version";
    case ParseError::bad_kind:
      return "bad_kind";
    case ParseError::zero_session:
      return "zero_session";
  }
  return "unknown";
}

}  // namespace cais::wire
