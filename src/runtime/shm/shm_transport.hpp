// runtime/shm/shm_transport.hpp — collectives of ranks that are on one machine, through memory that
// they share.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "runtime/settings.hpp"
#include "runtime/shm/execution.hpp"
#include "runtime/shm/group.hpp"
#include "runtime/transport.hpp"

namespace cais::runtime::shm {

class ShmTransport final : public Transport {
 public:
  /// All ranks of the group need the same `tuning`.
  ShmTransport(const Settings& settings, Group group, const Tuning& tuning);
  ~ShmTransport() override;

  std::string_view name() const override { return "shm"; }
  bool supports(const Collective& collective) const override;
  std::uint32_t fragment_bytes() const override;
  std::uint8_t lanes() const override { return 1; }
  void start(Operation& operation) override;
  bool progress() override;
  void wait(Duration limit) override;
  void abort(const Error& error) override;
  std::string waiting_for() const override;

 private:
  void end_all(const Error& error);
  bool spin_or_yield(const Blocked& blocked) const;
  void look_at_peers(const Blocked& blocked);
  Error lost(std::size_t rank, const char* how) const;

  const Group group_;
  const Duration spin_;
  const bool crowded_;  // more ranks than cores: who waits must let others run
  const std::int32_t owner_pid_;
  Execution execution_;
  std::deque<Operation*> operations_;  // the first one is under way
};

}  // namespace cais::runtime::shm
