// runtime/mixed/mixed_transport.hpp — a group over several hosts with several ranks on one of them:
// shared memory inside a host, another transport between the hosts' leaders.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "runtime/hosts.hpp"
#include "runtime/mixed/job.hpp"
#include "runtime/plan_cache.hpp"
#include "runtime/transport.hpp"

namespace cais::runtime::mixed {

/// One of the two transports, with what descriptors of its group hold.
struct Leg {
  std::unique_ptr<Transport> transport;  // none: this rank does not lead its host
  std::optional<PlanCache> plans;
  std::uint64_t next_op_seq = 0;
};

class MixedTransport final : public Transport {
 public:
  /// `local` joins the ranks of this host, in the order of Hosts; `across` the leaders of the
  /// hosts.
  MixedTransport(Hosts hosts, Seat seat, Leg local, Leg across);
  ~MixedTransport() override;

  std::string_view name() const override { return "mixed"; }
  bool supports(const Collective& collective) const override;
  std::uint32_t fragment_bytes() const override { return local_.transport->fragment_bytes(); }
  std::uint8_t lanes() const override { return 1; }
  void start(Operation& operation) override;
  bool progress() override;
  void wait(Duration limit) override;
  void abort(const Error& error) override;
  std::string waiting_for() const override;

 private:
  Leg& leg(Where where) { return where == Where::local ? local_ : across_; }
  bool drive_legs();
  bool advance(Job& job);
  bool begin_ready(Job& job, Where where);
  Result<void> begin(Job& job, Step& step);
  void fail(const Error& error);

  const Hosts hosts_;
  const Seat seat_;
  Leg local_;
  Leg across_;
  std::deque<Job> jobs_;  // the first one is under way
};

}  // namespace cais::runtime::mixed
