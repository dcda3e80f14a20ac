// cais-switch — the box where all lanes of a group meet: one worker and UDP port for each core, and
// a gRPC management interface where the ranks make their sessions (CAIS_SWITCH_IP).
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>

#include "core/switching/limits.hpp"
#include "rpc/server.hpp"
#include "runtime/udp/box_client.hpp"
#include "runtime/udp/switch_registry.hpp"

namespace {

using namespace cais;

struct Flags {
  std::string listen = "0.0.0.0";
  std::uint16_t management_port = runtime::management_port_default;
  std::uint16_t udp_port = 0;
  std::uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::uint32_t window = 4096;
  std::string debug = "WARN";
};

void declare(CLI::App& app, Flags& flags) {
  app.add_option("--listen", flags.listen, "Address to listen on, for packets and management")
      ->capture_default_str();
  app.add_option("--management", flags.management_port,
                 "TCP port of the management interface; 0: any")
      ->capture_default_str();
  app.add_option("--udp-port", flags.udp_port,
                 "UDP port of the first core; the others take those after it; 0: any")
      ->capture_default_str();
  app.add_option("--cores", flags.cores, "Workers, each with a thread and a socket of its own")
      ->check(CLI::Range(std::size_t{1}, switching::lanes_max))
      ->capture_default_str();
  app.add_option("--window", flags.window, "Fragments that a session may have in flight, at most")
      ->check(CLI::Range(8u, switching::window_fragments_max))
      ->capture_default_str();
  app.add_option("--debug", flags.debug, "NONE, VERSION, WARN, INFO or TRACE")
      ->capture_default_str();
}

int fail(const Error& error) {
  std::fprintf(stderr, "cais-switch: %s\n", error.message.c_str());
  return 1;
}

/// SIGINT and SIGTERM, blocked in every thread: main waits for them.
sigset_t block_stop_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

Result<void> check_ports(const Flags& flags) {
  constexpr std::uint32_t port_max = 65'535;
  const std::uint32_t last = flags.udp_port + flags.cores - 1;
  if (flags.udp_port == 0 || last <= port_max) return {};
  return Error{ErrorCode::invalid_argument, "--udp-port " + std::to_string(flags.udp_port) +
                                                " has no " + std::to_string(flags.cores) +
                                                " ports from it on (--cores)"};
}

int run(const Flags& flags) {
  if (Result<void> ports = check_ports(flags); !ports) return fail(ports.error());
  const sigset_t signals = block_stop_signals();
  Result<io::Address> listen = io::Address::resolve(flags.listen);
  if (!listen) return fail(listen.error());
  Result<telemetry::LogConfig> log_config = telemetry::parse_log_config(flags.debug, "", "");
  if (!log_config) return fail(log_config.error());
  Result<telemetry::Log> log = telemetry::Log::open(*log_config);
  if (!log) return fail(log.error());

  runtime::SwitchOptions options;
  options.listen = *listen;
  options.udp_port_first = flags.udp_port;
  options.workers = flags.cores;
  options.window_fragments_max = flags.window;
  options.log = *log;
  Result<std::unique_ptr<runtime::SwitchRegistry>> registry =
      runtime::SwitchRegistry::start(options);
  if (!registry) return fail(registry.error());
  Result<std::unique_ptr<rpc::Server>> server =
      rpc::Server::start(listen->with_port(flags.management_port).to_string(), **registry);
  if (!server) return fail(server.error());
  std::printf("cais-switch: %u cores; ranks set CAIS_SWITCH_IP=%s\n", flags.cores,
              listen->with_port(static_cast<std::uint16_t>((*server)->port())).to_string().c_str());
  std::fflush(stdout);

  int received = 0;
  ::sigwait(&signals, &received);
  (*registry)->end_all();
  (*server)->stop();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Adds what the ranks of CAIS groups send, and sends back the sums."};
  Flags flags;
  declare(app, flags);
  CLI11_PARSE(app, argc, argv);
  return run(flags);
}
