#include "rpc/server.hpp"

#include <grpcpp/grpcpp.h>

#include <deque>
#include <mutex>
#include <span>
#include <utility>

#include "cais/v1/switch.grpc.pb.h"
#include "rpc/convert.hpp"
#include "rpc/grpc_lifetime.hpp"

namespace cais::rpc {
namespace {

constexpr std::size_t events_max = 1024;  // that a rank has not taken: then its stream is ended
// A rank's host that vanishes is found out within keepalive_ms + keepalive_timeout_ms.
constexpr int keepalive_ms = 2000;
constexpr int keepalive_timeout_ms = 2000;
constexpr int ping_interval_min_ms = 500;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// The stream of one rank. gRPC calls the On… functions; the registry calls send and close.
class Stream final : public grpc::ServerWriteReactor<v1::SessionEvent>, public EventSink {
 public:
  /// gRPC keeps a bare pointer: the stream holds itself alive until OnDone.
  static std::shared_ptr<Stream> make(SwitchManagement& management) {
    auto stream = std::make_shared<Stream>(management);
    stream->self_ = stream;
    return stream;
  }
  explicit Stream(SwitchManagement& management) : management_(management) {}

  void send(const SessionEvent& event) override {
    const std::scoped_lock lock(mutex_);
    if (finished_) return;
    if (queue_.size() == events_max) return finish(grpc::Status::CANCELLED);
    queue_.push_back(to_proto(event));
    if (queue_.size() == 1) StartWrite(&queue_.front());
  }
  void close() override {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    if (queue_.empty()) finish(grpc::Status::OK);
  }
  void refuse(const grpc::Status& status) {
    const std::scoped_lock lock(mutex_);
    finish(status);
  }

  void OnWriteDone(bool ok) override {
    const std::scoped_lock lock(mutex_);
    queue_.pop_front();
    if (!ok) return finish(grpc::Status::CANCELLED);
    if (!queue_.empty()) return StartWrite(&queue_.front());
    if (closing_) finish(grpc::Status::OK);
  }
  void OnCancel() override {
    management_.gone(*this);
    const std::scoped_lock lock(mutex_);
    if (queue_.empty()) finish(grpc::Status::CANCELLED);  // else OnWriteDone does
  }
  void OnDone() override {
    management_.gone(*this);
    self_.reset();
  }

 private:
  void finish(const grpc::Status& status) {
    if (std::exchange(finished_, true)) return;
    Finish(status);
  }

  SwitchManagement& management_;
  std::mutex mutex_;
  std::deque<v1::SessionEvent> queue_;  // the first one is being written
  bool closing_ = false;
  bool finished_ = false;
  std::shared_ptr<Stream> self_;
};

class Service final : public v1::SwitchManagement::CallbackService {
 public:
  explicit Service(SwitchManagement& management) : management_(management) {}

  grpc::ServerWriteReactor<v1::SessionEvent>* Join(grpc::CallbackServerContext*,
                                                   const v1::JoinRequest* request) override {
    const std::shared_ptr<Stream> stream = Stream::make(management_);
    Result<JoinRequest> parsed = from_proto(*request);
    Result<void> joined = parsed ? management_.join(*parsed, stream) : Result<void>(parsed.error());
    if (!joined) stream->refuse(to_status(joined));
    return stream.get();
  }

  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const v1::DescribeRequest* request,
                                     v1::DescribeReply*) override {
    return answer(context, management_.describe(from_proto(request->member()),
                                                bytes_of(request->comm_descriptor()),
                                                bytes_of(request->shown())));
  }
  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context,
                                  const v1::LeaveRequest* request, v1::LeaveReply*) override {
    return answer(context, management_.leave(from_proto(request->member()), request->ops()));
  }
  grpc::ServerUnaryReactor* Abort(grpc::CallbackServerContext* context,
                                  const v1::AbortRequest* request, v1::AbortReply*) override {
    return answer(context, management_.abort(from_proto(request->member()),
                                             {error_code_of(request->code()), request->reason()}));
  }
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* context, const v1::StatusRequest*,
                                   v1::StatusReply* reply) override {
    *reply = to_proto(management_.status());
    return answer(context, {});
  }

 private:
  static grpc::ServerUnaryReactor* answer(grpc::CallbackServerContext* context,
                                          const Result<void>& result) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(to_status(result));
    return reactor;
  }

  SwitchManagement& management_;
};

class GrpcServer final : public Server {
 public:
  explicit GrpcServer(SwitchManagement& management) : service_(management) {}
  ~GrpcServer() override { stop(); }

  Result<void> listen(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive_ms);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keepalive_timeout_ms);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                               ping_interval_min_ms);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ != nullptr && port_ != 0) return {};
    return Error{ErrorCode::system, "cannot listen on " + address + " for gRPC: is it in use?"};
  }
  int port() const override { return port_; }
  void stop() override {
    // A deadline in the past cancels the streams that still stand.
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

 private:
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const std::string& address,
                                              SwitchManagement& management) {
  keep_grpc();
  auto server = std::make_unique<GrpcServer>(management);
  if (Result<void> listening = server->listen(address); !listening) return listening.error();
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace cais::rpc
