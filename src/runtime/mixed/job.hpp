// runtime/mixed/job.hpp — a collective over hosts as steps: collectives among the ranks of one host
// and among the hosts' leaders, with the copies and conversions between them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/collective.hpp"
#include "runtime/hosts.hpp"

namespace cais::runtime::mixed {

enum class Where : std::uint8_t {
  local,   // among the ranks of this host
  across,  // among the leaders of the hosts
};

struct Step {
  Where where = Where::local;
  Collective collective;
  std::optional<std::size_t> after;      // the step of this job that must be done before it begins
  std::function<void()> prepare;         // runs just before it begins; may be empty
  std::unique_ptr<Operation> operation;  // set when it has begun
};

/// The steps of each `Where` begin in the order in which they stand here: all ranks of a host, and
/// all leaders, have the same order.
struct Job {
  Operation* operation = nullptr;
  std::vector<Step> steps;
  std::vector<std::unique_ptr<std::byte[]>> memory;  // what steps work in
  std::size_t next_local = 0;   // no local step before this one is still to begin
  std::size_t next_across = 0;  // likewise
};

/// The steps of the rank at `seat` for `operation`. The sum's shape is by host (P8): the ranks of a
/// host in rank order, then the hosts in order, halves in float32 until the end.
Job make_job(const Hosts& hosts, Seat seat, Operation& operation);

}  // namespace cais::runtime::mixed
