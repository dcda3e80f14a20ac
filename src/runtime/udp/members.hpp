// runtime/udp/members.hpp — the ranks of a group tell each other where they are, and agree on what
// must be the same everywhere: session, window, fragment size.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "io/address.hpp"
#include "runtime/communicator.hpp"
#include "runtime/rendezvous.hpp"
#include "wire/keys.hpp"

namespace cais::runtime {

/// What a rank publishes.
struct Member {
  io::Address udp;
  io::Address tcp;           // of its control listener
  std::uint32_t window = 0;  // fragments, as its settings say
  std::uint32_t process = 0;
  SessionId session;         // rank 0's holds for all
  std::uint64_t secret = 0;  // rank 0's: opens the control channel
  wire::Tags tags{};         // as its settings say; the same at all ranks
  wire::Secret tag_secret;   // rank 0's: the packets' keys follow from it
  std::string switch_ip;     // as its settings say; the same at all ranks
  std::string host;

  /// "rank 2 (host 'a', process 71)"
  std::string name(std::size_t rank) const;
};

/// "rank 1 (…), rank 4 (…)": the names of the ranks in a bitmap.
std::string names_in(const std::vector<std::string>& names, std::uint64_t ranks);

/// Sets this rank's entry and waits for all others.
Result<std::vector<Member>> exchange_members(Rendezvous& rendezvous, const GroupConfig& group,
                                             const Member& self);

/// The least of the numbers that the ranks bring.
Result<std::uint32_t> agree_on_least(Rendezvous& rendezvous, const GroupConfig& group,
                                     std::string_view what, std::uint32_t value);

}  // namespace cais::runtime
