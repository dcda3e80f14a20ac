#include "runtime/udp/members.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace cais::runtime {
namespace {

constexpr int format_version = 1;

std::string key(const GroupConfig& group, std::string_view what, std::size_t rank) {
  return "cais/udp/" + group.name + "/" + std::string(what) + "/" + std::to_string(rank);
}

std::string encode(const Member& member) {
  std::ostringstream out;
  out << format_version << ' ' << member.udp.to_string() << ' ' << member.tcp.to_string() << ' '
      << member.window << ' ' << member.process << ' ' << member.session.value << ' '
      << member.secret << ' ' << (member.switch_ip.empty() ? "-" : member.switch_ip) << ' '
      << member.host;
  return out.str();
}

Result<Member> decode(const std::string& text, std::size_t rank) {
  const Error unreadable{
      ErrorCode::malformed,
      "rank " + std::to_string(rank) + " published '" + text +
          "', which this version of CAIS cannot read; run the same at all ranks"};
  std::istringstream in(text);
  int version = 0;
  std::string udp, tcp;
  Member member;
  in >> version >> udp >> tcp >> member.window >> member.process >> member.session.value >>
      member.secret >> member.switch_ip >> member.host;
  if (!in || version != format_version) return unreadable;
  const Result<io::Address> udp_address = io::Address::parse(udp);
  const Result<io::Address> tcp_address = io::Address::parse(tcp);
  if (!udp_address || !tcp_address) return unreadable;
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
    if (member->switch_ip != self.switch_ip) {
      return Error{ErrorCode::invalid_argument,
                   "CAIS_SWITCH_IP must be the same at all ranks, but is '" + member->switch_ip +
                       "' at " + member->name(group.outer_rank(rank)) + " and '" + self.switch_ip +
                       "' at rank " + std::to_string(group.outer_rank(group.rank))};
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
