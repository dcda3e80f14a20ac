// runtime/udp/udp_session.hpp — a group's UDP transport at work: operations in, packets and
// management out, and a thread that serves the peers while nobody else drives it.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "io/poller.hpp"
#include "runtime/transport.hpp"
#include "runtime/udp/endpoint.hpp"
#include "runtime/udp/management.hpp"
#include "telemetry/log.hpp"

namespace cais::runtime {

struct UdpSessionConfig {
  Rank rank;
  std::uint16_t ranks = 1;
  std::uint8_t lanes = 1;
  std::uint32_t fragment_bytes = 16;
  std::vector<Rank> outer_ranks;          // GroupConfig::outer_rank of each rank
  std::vector<std::string> names;         // of the ranks, for people
  std::vector<std::string> server_names;  // of Endpoint's addresses: ranks, or the box
  telemetry::Log log;
  Duration spin{};  // before a wait sleeps
};

class UdpSession final : public Transport {
 public:
  UdpSession(UdpSessionConfig config, std::unique_ptr<Endpoint> endpoint,
             std::unique_ptr<Management> management, io::Waker waker);
  ~UdpSession() override;

  std::string_view name() const override { return "udp"; }
  bool supports(const Collective& collective) const override;
  std::uint32_t fragment_bytes() const override { return config_.fragment_bytes; }
  std::uint8_t lanes() const override { return config_.lanes; }
  void start(Operation& operation) override;
  bool progress() override;
  void wait(Duration limit) override;
  void abort(const Error& error) override;
  std::string waiting_for() const override;

 private:
  enum class Known : std::uint8_t { asked, yes };
  struct UnderWay {
    std::uint64_t number;  // counts the operations of this transport
    Operation* operation;
  };

  // All of these are called with `mutex_` held.
  bool turn();
  void submit_described();
  bool take_management_events();
  void take_packet_events();
  void finish(std::uint64_t number);
  void fail(const Error& error);
  void fail_for_all(const Error& error);
  void fail_if_peers_left();
  void fail_if_needed(Rank gone);
  Duration time_to_wait(Duration limit) const;
  std::string who_is_late() const;
  Rank outer_rank(Rank rank) const;

  void serve();   // the thread
  bool driven();  // since the thread last asked
  void linger();

  const UdpSessionConfig config_;
  mutable std::mutex mutex_;
  std::unique_ptr<Endpoint> endpoint_;  // gone once the session has failed
  std::unique_ptr<Management> management_;
  std::optional<Error> failed_;
  std::uint64_t denied_by_ = 0;  // servers that have said that they have no such session (P16)
  std::unordered_map<std::uint64_t, Known> described_;    // by descriptor hash
  std::deque<UnderWay> waiting_;                          // for the switches to know the descriptor
  std::deque<UnderWay> under_way_;                        // in the agent
  std::vector<std::optional<std::uint64_t>> left_after_;  // by rank: operations it took part in
  std::uint64_t started_ = 0;
  std::uint32_t turns_ = 0;

  io::Waker waker_;
  std::atomic<bool> woken_{false};
  std::atomic<bool> management_due_{true};
  std::atomic<std::uint64_t> drives_{0};
  std::atomic<int> drivers_waiting_{0};
  std::uint64_t drives_seen_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace cais::runtime
