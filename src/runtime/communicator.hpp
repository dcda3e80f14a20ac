// runtime/communicator.hpp — a group of ranks that can run collectives: the one thing that the C
// API, the PyTorch backend and the benchmarks stand on. Thread-safe. All ranks of the group call
// the same collectives in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "runtime/collective.hpp"
#include "runtime/rendezvous.hpp"
#include "runtime/settings.hpp"
#include "runtime/transport.hpp"

namespace cais::runtime {

struct GroupConfig {
  std::string name;  // the same at all ranks, unique among the groups that share a store
  std::uint16_t rank = 0;
  std::uint16_t ranks = 1;
  Duration timeout = std::chrono::minutes(30);  // of each collective, and of coming together
  /// Of a group inside another, such as the ranks of one host: each rank's number in that one, by
  /// which messages name it. Empty: its own number.
  std::vector<std::uint16_t> outer_ranks = {};

  std::uint16_t outer_rank(std::size_t of) const {
    return outer_ranks.empty() ? static_cast<std::uint16_t>(of) : outer_ranks[of];
  }
};

/// Whether the caller of `start` will call `wait` at once.
enum class Start : std::uint8_t {
  caller_waits,  // nothing is woken: wait() drives the operation
  background,    // the progress thread drives it until somebody waits
};

class Communicator {
 public:
  /// Collective over the group: chooses the transport (`Settings::transport`, or by where the
  /// ranks are) and connects it. Blocks until all ranks are there, `config.timeout` at most.
  static Result<std::shared_ptr<Communicator>> create(const Settings& settings,
                                                      const GroupConfig& config,
                                                      Rendezvous& rendezvous);
  virtual ~Communicator() = default;

  virtual std::uint16_t rank() const = 0;
  virtual std::uint16_t ranks() const = 0;
  virtual std::string_view transport_name() const = 0;
  virtual bool supports(const Collective& collective) const = 0;

  /// Begins a collective. invalid_argument names what is wrong with it; unsupported means that
  /// `supports` is false. The operation may already be done on return.
  virtual Result<std::shared_ptr<Operation>> start(
      const Collective& collective, Start how, std::shared_ptr<void> keep_alive = nullptr,
      std::function<void(const Operation&)> on_done = nullptr) = 0;
  /// Drives the group until `operation` is done, and returns how it ended. timed_out after
  /// `timeout` (the group's own when negative): the message says which ranks have not arrived, and
  /// the group is aborted.
  virtual Result<void> wait(Operation& operation, Duration timeout = Duration(-1)) = 0;

  /// start + wait.
  virtual Result<void> run(const Collective& collective) = 0;

  /// Ends everything under way here and, where the transport can tell them, at the peers.
  virtual void abort(const std::string& reason) = 0;
  /// Orderly end: waits (bounded) until no peer needs this rank any more.
  virtual void shutdown() = 0;
};

}  // namespace cais::runtime
