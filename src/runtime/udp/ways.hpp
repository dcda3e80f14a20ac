// runtime/udp/ways.hpp — where a rank speaks from, and how large its packets may be.
#pragma once

#include <span>

#include "base/result.hpp"
#include "io/address.hpp"
#include "runtime/settings.hpp"

namespace cais::runtime {

/// The address of the interface that Settings::socket_ifname chooses.
Result<io::Address> local_address(const Settings& settings);
/// The address that the route to `peer` leaves from, unless Settings::socket_ifname chooses.
Result<io::Address> local_address_towards(const Settings& settings, const io::Address& peer);

/// The least path MTU of the ways from `local` to each of `peers`; Settings::mtu_bytes overrides.
Result<std::uint32_t> least_path_mtu(const Settings& settings, const io::Address& local,
                                     std::span<const io::Address> peers);

/// The largest payload of a fragment whose packet fits `mtu`: a multiple of 16, so that every dtype
/// divides it. invalid_argument when there is no room.
Result<std::uint32_t> fragment_bytes_for(std::uint32_t mtu, int family);

/// Fragments that all lanes together may have in flight, at most `asked`.
std::uint32_t fragments_in_flight(std::uint32_t asked, std::uint32_t fragment_bytes);

}  // namespace cais::runtime
