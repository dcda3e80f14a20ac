// runtime/udp/box_client.hpp — the control channel of a group whose lanes all meet at a
// cais-switch: its gRPC management interface, spoken by libcais_rpc.so.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "io/poller.hpp"
#include "rpc/client_api.hpp"
#include "runtime/udp/management.hpp"
#include "wire/keys.hpp"

namespace cais::runtime {

inline constexpr std::uint16_t management_port_default = 5400;

struct BoxJoin {
  std::string switch_address;  // HOST:PORT of the management interface
  std::string group;           // unique among all groups that ever use the switch
  Rank rank;
  std::uint16_t ranks = 1;
  std::string name;         // for people
  std::string udp_address;  // where this rank sends from
  wire::Tags tags{};
  std::uint32_t fragment_bytes = 0;
  std::uint32_t window_fragments = 0;  // all lanes together
};

struct BoxSession {
  SessionId session;
  Epoch epoch;
  std::vector<std::uint16_t> lane_ports;
  std::uint32_t window_fragments = 0;  // W of each lane
  wire::RankSecrets secrets;
};

class BoxClient final : public Management {
 public:
  /// Collective; returns once all ranks have joined. unavailable: libcais_rpc.so is not there, or
  /// the switch does not answer; timed_out: some rank did not come.
  static Result<std::unique_ptr<BoxClient>> join(const BoxJoin& request, Instant deadline);
  ~BoxClient() override;

  const BoxSession& session() const { return session_; }

  void describe(const wire::CommDescriptor& descriptor, DescriptorHash hash,
                const wire::CommDescriptor& shown) override;
  void report(const wire::Mismatch&) override {}  // the switch tells all ranks by itself
  std::string not_yet_described(DescriptorHash) const override { return switch_address_; }
  void abort(const Error& reason) override;
  void leave(std::uint64_t ops) override;
  void progress() override;
  bool poll_event(ManagementEvent& out) override;
  bool alone() const override;
  int fd() const override { return waker_.fd(); }

 private:
  BoxClient(const CaisRpcApi& api, io::Waker waker, const BoxJoin& request);
  Result<void> wait_until_joined(const BoxJoin& request, Instant deadline);
  static void on_event(void* self, const CaisRpcEvent* event);
  void take(const CaisRpcEvent& event);

  const CaisRpcApi& api_;
  io::Waker waker_;
  const std::string switch_address_;
  std::uint64_t peers_here_;  // bit r: rank r has neither left nor been lost
  BoxSession session_;

  mutable std::mutex mutex_;
  std::condition_variable joined_changed_;
  bool joined_ = false;
  std::optional<Error> ended_;
  std::deque<ManagementEvent> events_;
  CaisRpcClient* client_ = nullptr;
};

}  // namespace cais::runtime
