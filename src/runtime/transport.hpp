// runtime/transport.hpp — what carries a group's collectives: shared memory, UDP, or both.
//
// A transport is driven by whoever waits: the communicator lets one thread at a time call into it
// (the waiting caller, or the progress thread when nobody waits), so that a small collective costs
// no hand-over between threads. Operations are started and finished in op_seq order.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "runtime/collective.hpp"

namespace cais::runtime {

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;  // "shm", "udp", "mixed"

  /// Whether this transport computes such a collective. Decided from facts that all ranks share.
  virtual bool supports(const Collective& collective) const = 0;

  /// Payload of a fragment and lanes, for the descriptor; the same at all ranks.
  virtual std::uint32_t fragment_bytes() const = 0;
  virtual std::uint8_t lanes() const = 0;

  /// Queues the operation behind those started before. It must outlive its end.
  virtual void start(Operation& operation) = 0;

  /// Does what can be done now without waiting; ends operations through Operation::finish.
  /// True when anything moved. Errors end all operations that are under way.
  virtual bool progress() = 0;

  /// Waits until `progress` may have something to do, or `limit` has passed. May spin first.
  virtual void wait(Duration limit) = 0;

  /// Ends all operations under way, and all later ones, with `error`; tells the peers. From any
  /// thread; wakes a thread that is in `wait`.
  virtual void abort(const Error& error) = 0;

  /// What the oldest operation under way waits for, and whom, in words; for messages.
  virtual std::string waiting_for() const { return {}; }
};

}  // namespace cais::runtime
