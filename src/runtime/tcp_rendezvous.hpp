// runtime/tcp_rendezvous.hpp — the rendezvous of programs that bring no store of their own.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "runtime/rendezvous.hpp"

namespace cais::runtime {

/// Over io::TcpStore: `serve` at one rank, which listens at HOST:PORT; all others connect within
/// `timeout`. Errors: those of io::TcpStore::open.
Result<std::unique_ptr<Rendezvous>> make_tcp_rendezvous(std::string_view host_port, bool serve,
                                                        Duration timeout);

}  // namespace cais::runtime
