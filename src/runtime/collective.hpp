// runtime/collective.hpp — one collective as a rank asks for it, and the handle to its progress.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/result.hpp"
#include "base/types.hpp"
#include "nir/plan.hpp"
#include "wire/descriptor.hpp"

namespace cais::runtime {

/// `count` elements make one unit. With N ranks, `send` and `recv` hold
///   all_reduce      send 1 unit,              recv 1 unit (may be the same memory)
///   reduce          send 1 unit,              recv 1 unit at the root, unused elsewhere (same)
///   broadcast       recv 1 unit: read at the root, written elsewhere; send unused
///   all_gather      send 1 unit,              recv N units (send may be recv's own unit)
///   reduce_scatter  send N units,             recv 1 unit (recv may be send's own unit)
///   all_to_all      send N units,             recv N units (must not overlap)
///   gather          send 1 unit,              recv N units at the root
///   scatter         send N units at the root, recv 1 unit
///   barrier         nothing
struct Collective {
  OpKind kind = OpKind::barrier;
  ReduceOp reduce_op = ReduceOp::none;
  DType dtype = DType::uint8;
  Rank root{};
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;
  // For the descriptor only: what the caller's tensor looks like. dims 0: one dim of `count`.
  std::uint8_t dims = 0;
  std::int8_t shard_dim = -1;
  std::array<std::uint64_t, wire::dims_max> shape{};
};

/// A collective under way. Made by Communicator::start; `done` is set exactly once.
class Operation {
 public:
  bool done() const { return done_.load(std::memory_order_acquire); }
  /// Valid once done: how it ended.
  const Result<void>& outcome() const { return outcome_; }

  Collective collective;
  wire::CommDescriptor descriptor{};
  DescriptorHash descriptor_hash{};
  nir::Plan plan;
  std::uint64_t op_seq = 0;  // counts the collectives of the group
  /// The caller's collective, where this one is a step of it: what messages speak of. Null: itself.
  const Operation* step_of = nullptr;
  /// Called once by the thread that finished it, after `done`; may be empty.
  std::function<void(const Operation&)> on_done;
  /// Whatever must stay alive until it is done (tensors).
  std::shared_ptr<void> keep_alive;
  /// For the transport's own use while the operation is under way.
  std::array<std::uint64_t, 8> transport_words{};

  const Operation& callers() const { return step_of == nullptr ? *this : *step_of; }

  /// For transports: ends it. The communicator calls `on_done` afterwards.
  void finish(Result<void> outcome) {
    outcome_ = std::move(outcome);
    done_.store(true, std::memory_order_release);
  }
  /// For who made it: it is under way again. Nobody else may be looking at it.
  void rearm() {
    if (!outcome_.ok()) outcome_ = {};
    done_.store(false, std::memory_order_relaxed);
  }

 private:
  Result<void> outcome_;
  std::atomic<bool> done_{false};
};

}  // namespace cais::runtime
