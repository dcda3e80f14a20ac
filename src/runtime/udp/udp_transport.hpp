// runtime/udp/udp_transport.hpp — collectives between hosts, over UDP. With no box every rank
// embeds a switch for its share of the lanes (lane k is served by rank k); with Settings::switch_ip
// all lanes meet at a cais-switch.
#pragma once

#include <functional>
#include <memory>

#include "base/result.hpp"
#include "io/udp/udp_socket.hpp"
#include "runtime/communicator.hpp"
#include "runtime/rendezvous.hpp"
#include "runtime/settings.hpp"
#include "runtime/transport.hpp"

namespace cais::runtime {

using SocketFactory = std::function<Result<std::unique_ptr<io::DatagramSocket>>(
    const io::Address& local, const io::UdpOptions& options)>;

/// An io::UdpSocket.
Result<std::unique_ptr<io::DatagramSocket>> open_udp_socket(const io::Address& local,
                                                            const io::UdpOptions& options);

/// Collective over the group; blocks until every rank is there, `config.timeout` at most. The keys
/// that it sets in `rendezvous` begin with "cais/udp/" + config.name.
///
/// The transport may be called by one thread at a time, `abort` by any. When nobody drives it, a
/// thread of its own does, so that peers get their repeats and find the embedded switch alive. Its
/// destructor leaves the group in order: it serves until every peer has left too, 5 s at most.
///
/// Errors: invalid_argument (a setting names no usable interface or address), unavailable (the
/// cais-switch does not answer), timed_out (which rank did not come), system.
Result<std::unique_ptr<Transport>> make_udp_transport(
    const Settings& settings, const GroupConfig& config, Rendezvous& rendezvous,
    const SocketFactory& open_socket = open_udp_socket);

}  // namespace cais::runtime
