#include "runtime/udp/members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

namespace cais::runtime {
namespace {

constexpr int format_version = 2;

std::string key(const GroupConfig& group, std::string_view what, std::size_t rank) {
  return "cais/udp/" + group.name + "/" + std::string(what) + "/" + std::to_string(rank);
}

std::string to_hex(const wire::Secret& secret) {
  std::string text;
  for (const std::byte byte : secret.bytes) {
    text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  }
  return text;
}

std::optional<wire::Secret> secret_from_hex(std::string_view text) {
  wire::Secret secret;
  if (text.size() != 2 * secret.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < secret.bytes.size(); ++i) {
    std::uint8_t byte = 0;
    const char* const digits = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, byte, 16);
    if (error != std::errc() || end != digits + 2) return std::nullopt;
    secret.bytes[i] = std::byte{byte};
  }
  return secret;
}

std::string encode(const Member& member) {
  std::ostringstream out;
  out << format_version << ' ' << member.udp.to_string() << ' ' << member.tcp.to_string() << ' '
      << member.window << ' ' << member.process << ' ' << member.session.value << ' '
      << member.secret << ' ' << static_cast<int>(member.tags) << ' ' << to_hex(member.tag_secret)
      << ' ' << (member.switch_ip.empty() ? "-" : member.switch_ip) << ' ' << member.host;
  return out.str();
}

Result<Member> decode(const std::string& text, std::size_t rank) {
  const Error unreadable{
      ErrorCode::malformed,
      "rank " + std::to_string(rank) + " published '" + text +
          "', which this version of CAIS cannot read; run the same at all ranks"};
  std::istringstream in(text);
  int version = 0;
  int tags = 0;
  std::string udp, tcp, tag_secret;
  Member member;
  in >> version >> udp >> tcp >> member.window >> member.process >> member.session.value >>
      member.secret >> tags >> tag_secret >> member.switch_ip >> member.host;
  if (!in || version != format_version) return unreadable;
  const Result<io::Address> udp_address = io::Address::parse(udp);
  const Result<io::Address> tcp_address = io::Address::parse(tcp);
  const std::optional<wire::Secret> secret = secret_from_hex(tag_secret);
  const bool known =
      tags == static_cast<int>(wire::Tags::keyed) || tags == static_cast<int>(wire::Tags::checksum);
  if (!udp_address || !tcp_address || !secret || !known) return unreadable;
  member.tags = static_cast<wire::Tags>(tags);
  member.tag_secret = *secret;
  member.udp = *udp_address;
  member.tcp = *tcp_address;
  if (member.switch_ip == "-") member.switch_ip.clear();
  return member;
}

Error where(const Error& error, std::uint16_t rank) {
  return Error{error.code, "rank " + std::to_string(rank) + " did not come: " + error.message};
}

}  // namespace

std::string Member::name(std::size_t rank) const {
  return "rank " + std::to_string(rank) + " (host '" + host + "', process " +
         std::to_string(process) + ")";
}

std::string names_in(const std::vector<std::string>& names, std::uint64_t ranks) {
  std::string list;
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    if ((ranks >> rank & 1) != 0) list += (list.empty() ? "" : ", ") + names[rank];
  }
  return list;
}

Result<std::vector<Member>> exchange_members(Rendezvous& rendezvous, const GroupConfig& group,
                                             const Member& self) {
  Result<void> set = rendezvous.set(key(group, "member", group.rank), encode(self));
  if (!set) return set.error();
  std::vector<Member> members;
  for (std::size_t rank = 0; rank < group.ranks; ++rank) {
    Result<std::string> text = rendezvous.get(key(group, "member", rank), group.timeout);
    if (!text) return where(text.error(), group.outer_rank(rank));
    Result<Member> member = decode(*text, group.outer_rank(rank));
    if (!member) return member.error();
    const auto differs = [&](std::string_view setting, std::string_view theirs,
                             std::string_view ours) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} must be the same at all ranks, but is '{}' at {} and '{}' at "
                               "rank {}",
                               setting, theirs, member->name(group.outer_rank(rank)), ours,
                               group.outer_rank(group.rank))};
    };
    if (member->switch_ip != self.switch_ip) {
      return differs("CAIS_SWITCH_IP", member->switch_ip, self.switch_ip);
    }
    if (member->tags != self.tags) {
      return differs("CAIS_PACKET_TAGS", wire::to_string(member->tags), wire::to_string(self.tags));
    }
    members.push_back(std::move(*member));
  }
  return members;
}

Result<std::uint32_t> agree_on_least(Rendezvous& rendezvous, const GroupConfig& group,
                                     std::string_view what, std::uint32_t value) {
  Result<void> set = rendezvous.set(key(group, what, group.rank), std::to_string(value));
  if (!set) return set.error();
  std::uint32_t least = value;
  for (std::size_t rank = 0; rank < group.ranks; ++rank) {
    Result<std::string> text = rendezvous.get(key(group, what, rank), group.timeout);
    if (!text) return where(text.error(), group.outer_rank(rank));
    std::uint32_t theirs = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), theirs);
    if (error != std::errc() || end != text->data() + text->size()) {
      return Error{ErrorCode::malformed, "rank " + std::to_string(group.outer_rank(rank)) +
                                             " published '" + *text + "' as its " +
                                             std::string(what)};
    }
    least = std::min(least, theirs);
  }
  return least;
}

}  // namespace cais::runtime
