// runtime/udp/switch_registry.hpp — the sessions of a cais-switch: who has joined, what they have
// described, and how each ends (P12, P14, P19, P20). The workers hold the slots; this holds the
// names.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "io/address.hpp"
#include "rpc/switch_management.hpp"
#include "runtime/udp/switch_worker.hpp"
#include "runtime/udp/udp_transport.hpp"
#include "telemetry/log.hpp"

namespace cais::runtime {

struct SwitchOptions {
  io::Address listen;                         // of the UDP sockets
  std::uint16_t udp_port_first = 0;           // worker i takes udp_port_first + i; 0: any
  std::uint32_t workers = 1;                  // at most switching::lanes_max
  std::uint32_t window_fragments_max = 4096;  // of a session, over all lanes
  telemetry::Log log;
};

class SwitchRegistry final : public rpc::SwitchManagement {
 public:
  static Result<std::unique_ptr<SwitchRegistry>> start(
      const SwitchOptions& options, const SocketFactory& open_socket = open_udp_socket);
  ~SwitchRegistry() override;

  Result<void> join(const rpc::JoinRequest& request,
                    std::shared_ptr<rpc::EventSink> events) override;
  void gone(const rpc::EventSink& events) override;
  Result<void> describe(const rpc::Member& member, std::span<const std::byte> descriptor,
                        std::span<const std::byte> shown) override;
  Result<void> leave(const rpc::Member& member, std::uint64_t ops) override;
  Result<void> abort(const rpc::Member& member, const Error& reason) override;
  rpc::Status status() override;

  /// Ends every session; its ranks hear that the switch is shutting down.
  void end_all();

 private:
  struct Participant {
    std::shared_ptr<rpc::EventSink> events;  // empty: has not come, or is gone
    io::Address address;
    std::string name;
    bool left = false;
  };
  struct Session {
    SessionId id;
    std::string group;
    std::uint32_t fragment_bytes = 0;
    std::uint32_t window_fragments = 0;
    wire::Tags tags{};
    wire::Secret secret;
    std::vector<Participant> ranks;
    std::unordered_map<std::uint64_t, std::string> shown;  // 128 bytes by descriptor hash
    bool open = false;                                     // at the workers
  };
  using Sessions = std::map<std::uint32_t, Session>;

  explicit SwitchRegistry(const SwitchOptions& options);

  // With `mutex_` held.
  Result<Session*> session_for(const rpc::JoinRequest& request);
  Result<Session*> session_of(const rpc::Member& member);
  Result<void> open(Session& session);
  void tell_all(const Session& session, const rpc::SessionEvent& event);
  void end(SessionId id, const std::optional<Error>& error);
  void take_mismatch(const switching::MismatchEvent& event);

  void run();  // the thread that takes what workers report: they must not wait for `mutex_`

  const SwitchOptions options_;
  std::vector<std::unique_ptr<SwitchWorker>> workers_;
  std::mutex mutex_;  // before reports_mutex_
  Sessions sessions_;
  std::unordered_map<const rpc::EventSink*, std::pair<SessionId, Rank>> members_;

  std::mutex reports_mutex_;
  std::condition_variable reported_;
  std::deque<switching::MismatchEvent> reports_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace cais::runtime
