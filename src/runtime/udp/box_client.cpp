#include "runtime/udp/box_client.hpp"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>
#include <span>

#include "base/first_bits.hpp"
#include "io/clock.hpp"

namespace cais::runtime {
namespace {

constexpr char library_name[] = "libcais_rpc.so";

// Beside whatever this code is part of, where a build or an installation puts it, or where the
// system looks.
std::vector<std::string> library_candidates() {
  std::vector<std::string> candidates;
  Dl_info self{};
  if (::dladdr(reinterpret_cast<const void*>(&library_candidates), &self) != 0 &&
      self.dli_fname != nullptr) {
    const std::filesystem::path folder =
        std::filesystem::absolute(self.dli_fname).lexically_normal().parent_path();
    candidates.push_back((folder / library_name).string());
    candidates.push_back((folder.parent_path() / "lib" / library_name).string());
  }
  candidates.emplace_back(library_name);
  return candidates;
}

// libtorch's protobuf must not be taken for the library's own (rpc/client_api.hpp). The sanitizers
// refuse RTLD_DEEPBIND; what is built with them never shares a process with libtorch.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int apart = RTLD_LOCAL;
#else
constexpr int apart = RTLD_LOCAL | RTLD_DEEPBIND;
#endif

// Opened once and never closed: gRPC leaves threads behind.
Result<const CaisRpcApi*> load_library() {
  std::string tried;
  for (const std::string& candidate : library_candidates()) {
    void* library = ::dlopen(candidate.c_str(), RTLD_NOW | apart);
    if (library == nullptr) {
      const char* why = ::dlerror();
      tried += (tried.empty() ? "" : "; ") + std::string(why == nullptr ? candidate : why);
      continue;
    }
    const auto function =
        reinterpret_cast<CaisRpcApiFunction>(::dlsym(library, cais_rpc_api_symbol));
    if (function != nullptr && function()->version == cais_rpc_api_version) return function();
    tried += (tried.empty() ? "" : "; ") + candidate + " is of another version of CAIS";
  }
  return Error{
      ErrorCode::unavailable,
      "CAIS_SWITCH_IP is set, but libcais_rpc.so, which speaks to a cais-switch, cannot be "
      "loaded: this package was built without gRPC, or it lies where nobody looks. Build "
      "CAIS with CAIS_BUILD_RPC=ON and put the folder of libcais_rpc.so into "
      "LD_LIBRARY_PATH (" +
          tried + ")"};
}

std::string copy_descriptor(const unsigned char* bytes) {
  return {reinterpret_cast<const char*>(bytes), wire::descriptor_bytes};
}

Result<wire::CommDescriptor> parse(const unsigned char* bytes) {
  const std::string copy = copy_descriptor(bytes);
  return wire::parse_descriptor(std::as_bytes(std::span(copy.data(), copy.size())));
}

wire::Secret secret_at(const unsigned char* bytes) {
  wire::Secret secret;
  std::memcpy(secret.bytes.data(), bytes, secret.bytes.size());
  return secret;
}

}  // namespace

Result<std::unique_ptr<BoxClient>> BoxClient::join(const BoxJoin& request, Instant deadline) {
  Result<const CaisRpcApi*> api = load_library();
  if (!api) return api.error();
  Result<io::Waker> waker = io::Waker::open();
  if (!waker) return waker.error();
  auto client = std::unique_ptr<BoxClient>(new BoxClient(**api, std::move(*waker), request));
  if (Result<void> joined = client->wait_until_joined(request, deadline); !joined) {
    return joined.error();
  }
  return client;
}

BoxClient::BoxClient(const CaisRpcApi& api, io::Waker waker, const BoxJoin& request)
    : api_(api),
      waker_(std::move(waker)),
      switch_address_("the cais-switch at " + request.switch_address),
      peers_here_(first_bits(request.ranks)) {
  peers_here_ &= ~(std::uint64_t{1} << request.rank.value);
  const CaisRpcJoin join{
      .group = request.group.c_str(),
      .name = request.name.c_str(),
      .udp_address = request.udp_address.c_str(),
      .rank = request.rank.value,
      .ranks = request.ranks,
      .tags = static_cast<std::uint32_t>(request.tags),
      .fragment_bytes = request.fragment_bytes,
      .window_fragments = request.window_fragments,
  };
  client_ = api_.join(request.switch_address.c_str(), &join, &BoxClient::on_event, this);
}

BoxClient::~BoxClient() { api_.destroy(client_); }

Result<void> BoxClient::wait_until_joined(const BoxJoin& request, Instant deadline) {
  std::unique_lock lock(mutex_);
  joined_changed_.wait_for(lock, deadline - io::now(),
                           [this] { return joined_ || ended_.has_value(); });
  if (ended_) return *ended_;
  if (joined_) return {};
  return Error{ErrorCode::timed_out, "not all ranks have joined the session at the cais-switch " +
                                         request.switch_address + " in time"};
}

void BoxClient::on_event(void* self, const CaisRpcEvent* event) {
  static_cast<BoxClient*>(self)->take(*event);
}

void BoxClient::take(const CaisRpcEvent& event) {
  const std::scoped_lock lock(mutex_);
  switch (event.kind) {
    case CAIS_RPC_JOINED:
      session_ = BoxSession{SessionId(event.session),
                            Epoch(static_cast<std::uint16_t>(event.epoch)),
                            {event.lane_ports, event.lane_ports + event.lanes},
                            event.window_fragments,
                            {secret_at(event.own_secret), secret_at(event.group_secret)}};
      joined_ = true;
      joined_changed_.notify_all();
      break;
    case CAIS_RPC_DESCRIBED:
      events_.push_back(Described{DescriptorHash(event.hash)});
      break;
    case CAIS_RPC_MISMATCHED: {
      Result<wire::CommDescriptor> first = parse(event.first_descriptor);
      Result<wire::CommDescriptor> second = parse(event.second_descriptor);
      if (!first || !second) break;
      events_.push_back(Refused{Rank(static_cast<std::uint16_t>(event.first)),
                                Rank(static_cast<std::uint16_t>(event.second)), *first, *second});
      break;
    }
    case CAIS_RPC_LEFT:
      if (event.first >= ranks_max) break;
      peers_here_ &= ~(std::uint64_t{1} << event.first);
      events_.push_back(Left{Rank(static_cast<std::uint16_t>(event.first)), event.ops});
      break;
    case CAIS_RPC_ENDED:
      ended_ = Error{static_cast<ErrorCode>(event.code), event.message};
      // The switch closes the session when the last rank has left: that is no failure.
      if (peers_here_ != 0 || !joined_) events_.push_back(Ended{*ended_});
      peers_here_ = 0;
      joined_changed_.notify_all();
      break;
    default:
      break;
  }
  waker_.wake();
}

void BoxClient::describe(const wire::CommDescriptor& descriptor, DescriptorHash hash,
                         const wire::CommDescriptor& shown) {
  const auto bytes = wire::as_bytes(descriptor);
  const auto bytes_shown = wire::as_bytes(shown);
  api_.describe(client_, reinterpret_cast<const unsigned char*>(bytes.data()),
                reinterpret_cast<const unsigned char*>(bytes_shown.data()), hash.value);
}

void BoxClient::abort(const Error& reason) {
  api_.abort(client_, static_cast<std::uint32_t>(reason.code), reason.message.c_str());
}
void BoxClient::leave(std::uint64_t ops) { api_.leave(client_, ops); }
void BoxClient::progress() { waker_.clear(); }

bool BoxClient::poll_event(ManagementEvent& out) {
  const std::scoped_lock lock(mutex_);
  if (events_.empty()) return false;
  out = std::move(events_.front());
  events_.pop_front();
  return true;
}

bool BoxClient::alone() const {
  const std::scoped_lock lock(mutex_);
  return peers_here_ == 0;
}

}  // namespace cais::runtime
