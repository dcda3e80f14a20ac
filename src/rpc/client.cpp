// libcais_rpc.so: a rank's side of the management interface (client_api.hpp).
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cais/v1/switch.grpc.pb.h"
#include "rpc/client_api.hpp"
#include "rpc/convert.hpp"
#include "rpc/grpc_lifetime.hpp"

namespace {

using cais::Error;
using cais::ErrorCode;
namespace v1 = cais::v1;

constexpr int keepalive_ms = 2000;
constexpr int keepalive_timeout_ms = 2000;
constexpr auto call_timeout = std::chrono::seconds(10);

std::shared_ptr<grpc::Channel> channel_to(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keepalive_timeout_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Ranks go straight to their switch, whatever http_proxy says.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A channel of its own: another group's end must not be this one's.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

const unsigned char* bytes_of(const std::string& text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

struct CaisRpcClient final : grpc::ClientReadReactor<v1::SessionEvent> {
 public:
  CaisRpcClient(const char* address, const CaisRpcJoin& join, CaisRpcCallback callback,
                void* context)
      : address_(address),
        callback_(callback),
        callback_context_(context),
        stub_(v1::SwitchManagement::NewStub(channel_to(address))) {
    request_.set_group(join.group);
    request_.set_name(join.name);
    request_.set_udp_address(join.udp_address);
    request_.set_rank(join.rank);
    request_.set_ranks(join.ranks);
    request_.set_tags(static_cast<v1::Tags>(join.tags));
    request_.set_fragment_bytes(join.fragment_bytes);
    request_.set_window_fragments(join.window_fragments);
    member_.set_rank(join.rank);
    stub_->async()->Join(&stream_context_, &request_, this);
    StartRead(&event_);
    StartCall();
  }

  ~CaisRpcClient() override {
    // A Leave on its way must arrive before the stream ends, or this rank would count as lost.
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return calls_ == 0; });
    stream_context_.TryCancel();
    ended_.wait(lock, [this] { return done_ && calls_ == 0; });
  }

  void describe(const unsigned char* descriptor, const unsigned char* shown, std::uint64_t hash) {
    auto call = begin<v1::DescribeRequest, v1::DescribeReply>();
    call->request.set_comm_descriptor(descriptor, 128);
    call->request.set_shown(shown, 128);
    stub_->async()->Describe(&call->context, &call->request, &call->reply,
                             [this, call, hash](const grpc::Status& status) mutable {
                               if (status.ok()) {
                                 CaisRpcEvent event{};
                                 event.kind = CAIS_RPC_DESCRIBED;
                                 event.hash = hash;
                                 tell(event);
                               } else {
                                 end(cais::rpc::to_error(status, whom()));
                               }
                               finish_call(call);
                             });
  }

  void leave(std::uint64_t ops) {
    auto call = begin<v1::LeaveRequest, v1::LeaveReply>();
    call->request.set_ops(ops);
    stub_->async()->Leave(&call->context, &call->request, &call->reply,
                          [this, call](const grpc::Status&) mutable { finish_call(call); });
  }

  void abort(std::uint32_t code, const char* reason) {
    auto call = begin<v1::AbortRequest, v1::AbortReply>();
    call->request.set_code(code);
    call->request.set_reason(reason);
    stub_->async()->Abort(&call->context, &call->request, &call->reply,
                          [this, call](const grpc::Status&) mutable { finish_call(call); });
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;  // OnDone tells why
    take(event_);
    StartRead(&event_);
  }

  void OnDone(const grpc::Status& status) override {
    end(status.ok() ? Error{ErrorCode::unavailable, whom() + " has ended the session"}
                    : cais::rpc::to_error(status, whom()));
    const std::scoped_lock lock(mutex_);
    done_ = true;
    ended_.notify_all();
  }

 private:
  template <typename Request, typename Reply>
  struct Call {
    grpc::ClientContext context;
    Request request;
    Reply reply;
  };

  template <typename Request, typename Reply>
  std::shared_ptr<Call<Request, Reply>> begin() {
    auto call = std::make_shared<Call<Request, Reply>>();
    call->context.set_deadline(std::chrono::system_clock::now() + call_timeout);
    const std::scoped_lock lock(mutex_);
    *call->request.mutable_member() = member_;
    ++calls_;
    return call;
  }
  /// What the call holds of the channel goes first: once it is counted as over, the destructor may
  /// end the channel, which must not be left to a thread of gRPC.
  template <typename Request, typename Reply>
  void finish_call(std::shared_ptr<Call<Request, Reply>>& call) {
    call.reset();
    const std::scoped_lock lock(mutex_);
    --calls_;
    ended_.notify_all();
  }

  void take(const v1::SessionEvent& message) {
    CaisRpcEvent event{};
    if (message.has_joined()) {
      take_joined(message.joined());
    } else if (message.has_mismatched()) {
      const v1::Mismatched& mismatched = message.mismatched();
      if (mismatched.first_descriptor().size() != 128 ||
          mismatched.second_descriptor().size() != 128) {
        return;
      }
      event.kind = CAIS_RPC_MISMATCHED;
      event.first = mismatched.first();
      event.second = mismatched.second();
      event.first_descriptor = bytes_of(mismatched.first_descriptor());
      event.second_descriptor = bytes_of(mismatched.second_descriptor());
      tell(event);
    } else if (message.has_left()) {
      event.kind = CAIS_RPC_LEFT;
      event.first = message.left().rank();
      event.ops = message.left().ops();
      tell(event);
    } else if (message.has_ended()) {
      const ErrorCode code = cais::rpc::error_code_of(message.ended().code());
      const bool itself = code == ErrorCode::unavailable;
      end(Error{code, (itself ? whom() + ": " : "") + message.ended().message()});
    }
  }

  void take_joined(const v1::Joined& joined) {
    if (!cais::rpc::is_secret(joined.own_secret()) ||
        !cais::rpc::is_secret(joined.group_secret())) {
      return end(Error{ErrorCode::malformed,
                       whom() + " sent no keys; run the same version of CAIS everywhere"});
    }
    {
      const std::scoped_lock lock(mutex_);
      member_.set_session(joined.session());
      member_.set_own_secret(joined.own_secret());
    }
    std::vector<std::uint16_t> ports;
    for (const std::uint32_t port : joined.lane_ports()) {
      ports.push_back(static_cast<std::uint16_t>(port));
    }
    CaisRpcEvent event{};
    event.kind = CAIS_RPC_JOINED;
    event.session = joined.session();
    event.epoch = joined.epoch();
    event.lanes = static_cast<std::uint32_t>(ports.size());
    event.lane_ports = ports.data();
    event.window_fragments = joined.window_fragments();
    event.own_secret = bytes_of(joined.own_secret());
    event.group_secret = bytes_of(joined.group_secret());
    tell(event);
  }

  void end(const Error& error) {
    CaisRpcEvent event{};
    event.kind = CAIS_RPC_ENDED;
    event.code = static_cast<std::uint32_t>(error.code);
    event.message = error.message.c_str();
    tell(event);
  }

  // The last event is the end; calls that are answered later are of no interest.
  void tell(const CaisRpcEvent& event) {
    const std::scoped_lock lock(callback_mutex_);
    if (std::exchange(told_end_, told_end_ || event.kind == CAIS_RPC_ENDED)) return;
    callback_(callback_context_, &event);
  }

  std::string whom() const { return "the cais-switch at " + address_ + " (CAIS_SWITCH_IP)"; }

  const std::string address_;
  const CaisRpcCallback callback_;
  void* const callback_context_;
  std::mutex callback_mutex_;
  bool told_end_ = false;

  std::unique_ptr<v1::SwitchManagement::Stub> stub_;
  grpc::ClientContext stream_context_;
  v1::JoinRequest request_;
  v1::SessionEvent event_;

  std::mutex mutex_;
  std::condition_variable ended_;
  v1::Member member_;
  int calls_ = 0;
  bool done_ = false;
};

namespace {

constexpr CaisRpcApi api{
    .version = cais_rpc_api_version,
    .join =
        [](const char* address, const CaisRpcJoin* join, CaisRpcCallback callback, void* context) {
          cais::rpc::keep_grpc();
          return new CaisRpcClient(address, *join, callback, context);
        },
    .describe = [](CaisRpcClient* client, const unsigned char* descriptor,
                   const unsigned char* shown,
                   std::uint64_t hash) { client->describe(descriptor, shown, hash); },
    .leave = [](CaisRpcClient* client, std::uint64_t ops) { client->leave(ops); },
    .abort = [](CaisRpcClient* client, std::uint32_t code,
                const char* reason) { client->abort(code, reason); },
    .destroy = [](CaisRpcClient* client) { delete client; },
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const CaisRpcApi* cais_rpc_api() { return &api; }
