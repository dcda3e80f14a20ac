// runtime/group_communicator.hpp — the Communicator over a transport: who drives it, and when.
//
// One thread at a time drives the transport, holding `drive_`: whoever waits for an operation, or
// the progress thread while operations are under way that nobody waits for. A blocking collective
// is driven by its caller from beginning to end. Operations that are started while another thread
// drives are queued; the driver takes them over. Callbacks run with no lock held.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/communicator.hpp"
#include "runtime/plan_cache.hpp"

namespace cais::runtime {

class GroupCommunicator final : public Communicator {
 public:
  GroupCommunicator(const Settings& settings, const GroupConfig& config,
                    std::unique_ptr<Transport> transport);
  ~GroupCommunicator() override;

  std::uint16_t rank() const override { return config_.rank; }
  std::uint16_t ranks() const override { return config_.ranks; }
  std::string_view transport_name() const override { return transport_name_; }
  bool supports(const Collective& collective) const override;
  Result<std::shared_ptr<Operation>> start(const Collective& collective, Start how,
                                           std::shared_ptr<void> keep_alive,
                                           std::function<void(const Operation&)> on_done) override;
  Result<void> wait(Operation& operation, Duration timeout) override;
  Result<void> run(const Collective& collective) override;
  void abort(const std::string& reason) override;
  void shutdown() override;

 private:
  using Drive = std::unique_lock<std::mutex>;
  struct Pending {
    std::shared_ptr<Operation> operation;
    Instant deadline;
  };

  Result<void> prepare(const Collective& collective, Operation& operation);
  Result<void> check_pointers(const Collective& collective, const nir::Plan& plan) const;
  void take_queued();
  void launch(Operation& operation);
  void drive_until_done(Drive& drive, Operation& operation, Instant* deadline, Duration timeout);
  void call_back_finished(Drive& drive);
  void give_drive_back(Drive& drive);
  Error timeout_error(Duration timeout) const;
  void run_progress_thread();
  void progress_in_background(Drive& drive);
  void stop_progress_thread();

  const GroupConfig config_;
  const std::string transport_name_;
  const std::int32_t owner_pid_;

  std::mutex drive_;                      // before queue_mutex_
  std::shared_ptr<Transport> transport_;  // changed with both locks held
  std::deque<Pending> under_way_;         // by drive_: given to the transport, oldest first
  std::uint64_t next_op_seq_ = 0;         // by drive_
  Operation resident_;                    // by drive_: of run()
  std::atomic<int> waiters_{0};           // threads that want `drive_`

  mutable std::mutex queue_mutex_;
  PlanCache plans_;             // by queue_mutex_
  std::deque<Pending> queued_;  // by queue_mutex_
  bool background_ = false;     // by queue_mutex_: there may be work that nobody waits for
  bool stopping_ = false;       // by queue_mutex_
  bool closed_ = false;         // by queue_mutex_
  std::condition_variable background_changed_;
  std::thread progress_thread_;  // begun by the first background operation
};

}  // namespace cais::runtime
