#include "runtime/udp/switch_registry.hpp"

#include <algorithm>
#include <bit>

#include "runtime/udp/random.hpp"

namespace cais::runtime {
namespace {

constexpr Epoch first_epoch{1};
constexpr std::uint32_t window_fragments_min = 8;
constexpr std::size_t reports_max = 1024;

Error refused(const std::string& why) { return Error{ErrorCode::invalid_argument, why}; }

}  // namespace

SwitchRegistry::SwitchRegistry(const SwitchOptions& options) : options_(options) {}

Result<std::unique_ptr<SwitchRegistry>> SwitchRegistry::start(const SwitchOptions& options,
                                                              const SocketFactory& open_socket) {
  auto registry = std::unique_ptr<SwitchRegistry>(new SwitchRegistry(options));
  SwitchRegistry* self = registry.get();
  const auto on_mismatch = [self](const switching::MismatchEvent& event) {
    const std::scoped_lock lock(self->reports_mutex_);
    if (self->reports_.size() < reports_max) self->reports_.push_back(event);
    self->reported_.notify_one();
  };
  for (std::uint32_t i = 0; i < options.workers; ++i) {
    const std::uint16_t first = options.udp_port_first;
    const auto port = static_cast<std::uint16_t>(first == 0 ? 0 : first + i);
    Result<std::unique_ptr<io::DatagramSocket>> socket =
        open_socket(options.listen.with_port(port), io::UdpOptions{});
    if (!socket) return socket.error();
    Result<io::Waker> waker = io::Waker::open();
    if (!waker) return waker.error();
    registry->workers_.push_back(std::make_unique<SwitchWorker>(
        std::move(*socket), std::move(*waker), on_mismatch, options.log));
  }
  registry->thread_ = std::thread([self] { self->run(); });
  return registry;
}

SwitchRegistry::~SwitchRegistry() {
  {
    const std::scoped_lock lock(reports_mutex_);
    stopping_ = true;
  }
  reported_.notify_one();
  if (thread_.joinable()) thread_.join();
  end_all();
}

void SwitchRegistry::end_all() {
  const std::scoped_lock lock(mutex_);
  while (!sessions_.empty()) {
    end(SessionId(sessions_.begin()->first), Error{ErrorCode::unavailable, "it is shutting down"});
  }
}

Result<SwitchRegistry::Session*> SwitchRegistry::session_for(const rpc::JoinRequest& request) {
  for (auto& [id, session] : sessions_) {
    if (session.group != request.group) continue;
    if (session.ranks.size() != request.ranks) {
      return refused("group '" + request.group + "' has " + std::to_string(session.ranks.size()) +
                     " ranks, not " + std::to_string(request.ranks));
    }
    if (session.fragment_bytes != request.fragment_bytes) {
      return refused("group '" + request.group + "' has fragments of " +
                     std::to_string(session.fragment_bytes) + " bytes, not " +
                     std::to_string(request.fragment_bytes));
    }
    if (session.tags != request.tags) {
      return refused("group '" + request.group + "' has " + wire::to_string(session.tags) +
                     " packet tags, not " + wire::to_string(request.tags) +
                     ": CAIS_PACKET_TAGS must be the same at all ranks");
    }
    return &session;
  }
  if (sessions_.size() >= switching::sessions_max) {
    return Error{
        ErrorCode::resource_exhausted,
        "the switch serves " + std::to_string(sessions_.size()) + " sessions, and no more fit"};
  }
  std::uint32_t id = 0;
  while (id == 0 || sessions_.contains(id)) id = static_cast<std::uint32_t>(random_word());
  Session& session = sessions_[id];
  session.id = SessionId(id);
  session.group = request.group;
  session.fragment_bytes = request.fragment_bytes;
  session.window_fragments = options_.window_fragments_max;
  session.tags = request.tags;
  session.secret = random_secret();
  session.ranks.resize(request.ranks);
  return &session;
}

Result<void> SwitchRegistry::join(const rpc::JoinRequest& request,
                                  std::shared_ptr<rpc::EventSink> events) {
  Result<io::Address> address = io::Address::parse(request.udp_address);
  if (!address) return address.error();
  const std::scoped_lock lock(mutex_);
  Result<Session*> found = session_for(request);
  if (!found) return found.error();
  Session& session = **found;
  Participant& self = session.ranks[request.rank.value];
  if (self.events != nullptr || session.open) {
    return refused("rank " + std::to_string(request.rank.value) + " of group '" + request.group +
                   "' has joined already");
  }
  self = Participant{events, *address, request.name, false};
  members_[events.get()] = {session.id, request.rank};
  session.window_fragments = std::min(session.window_fragments, request.window_fragments);
  options_.log.info(telemetry::Subsystem::switching, "session {}: {} of group '{}' has joined",
                    session.id.value, self.name, session.group);
  const bool complete = std::all_of(session.ranks.begin(), session.ranks.end(),
                                    [](const Participant& one) { return one.events != nullptr; });
  if (!complete) return {};
  if (Result<void> opened = open(session); !opened) end(session.id, opened.error());
  return {};
}

Result<void> SwitchRegistry::open(Session& session) {
  const auto lanes = static_cast<std::uint32_t>(workers_.size());
  rpc::Joined joined;
  joined.session = session.id;
  joined.epoch = first_epoch;
  joined.window_fragments =
      std::bit_floor(std::max(session.window_fragments / lanes, window_fragments_min));

  switching::SessionConfig config{};
  config.session = session.id;
  config.epoch = first_epoch;
  config.ranks = static_cast<std::uint16_t>(session.ranks.size());
  config.lanes = static_cast<std::uint8_t>(lanes);
  config.window_fragments = joined.window_fragments;
  config.payload_bytes_max = session.fragment_bytes;
  config.keys = wire::Keys::of_session(session.tags, session.secret, config.ranks, first_epoch);
  std::vector<io::Address> addresses;
  for (const Participant& rank : session.ranks) addresses.push_back(rank.address);
  for (std::size_t lane = 0; lane < workers_.size(); ++lane) {
    config.lanes_served = std::uint64_t{1} << lane;
    session.open = true;
    if (Result<void> opened = workers_[lane]->open(config, addresses); !opened) return opened;
    joined.lane_ports.push_back(workers_[lane]->port());
  }
  for (std::uint16_t rank = 0; rank < config.ranks; ++rank) {
    joined.secrets = wire::secrets_of(session.secret, Rank(rank));
    const auto& events = session.ranks[rank].events;
    if (events != nullptr) events->send(joined);
  }
  return {};
}

void SwitchRegistry::tell_all(const Session& session, const rpc::SessionEvent& event) {
  for (const Participant& rank : session.ranks) {
    if (rank.events != nullptr) rank.events->send(event);
  }
}

// P20: with `error`, the ranks that are there hear of it; slots, ports and streams come back.
void SwitchRegistry::end(SessionId id, const std::optional<Error>& error) {
  const auto found = sessions_.find(id.value);
  if (found == sessions_.end()) return;
  Session& session = found->second;
  options_.log.info(telemetry::Subsystem::switching, "session {} of group '{}' ends: {}", id.value,
                    session.group, error ? error->message : "all ranks have left");
  if (error) tell_all(session, rpc::Ended{*error});
  for (const Participant& rank : session.ranks) {
    if (rank.events == nullptr) continue;
    members_.erase(rank.events.get());
    rank.events->close();
  }
  if (session.open) {
    for (const auto& worker : workers_) worker->close(id);
  }
  sessions_.erase(found);
}

void SwitchRegistry::gone(const rpc::EventSink& events) {
  const std::scoped_lock lock(mutex_);
  const auto found = members_.find(&events);
  if (found == members_.end()) return;
  const auto [id, rank] = found->second;
  members_.erase(found);
  Participant& self = sessions_.at(id.value).ranks[rank.value];
  self.events = nullptr;
  if (self.left) return;
  end(id,
      Error{ErrorCode::rank_lost,
            self.name + " is lost: its connection to the cais-switch broke. Look for the reason "
                        "in that rank's own output"});
}

Result<SwitchRegistry::Session*> SwitchRegistry::session_of(const rpc::Member& member) {
  const auto found = sessions_.find(member.session.value);
  if (found == sessions_.end() || member.rank.value >= found->second.ranks.size() ||
      !wire::equal(member.own, wire::secrets_of(found->second.secret, member.rank).own)) {
    return Error{ErrorCode::invalid_argument, "there is no session " +
                                                  std::to_string(member.session.value) +
                                                  " with such a member: it has ended"};
  }
  return &found->second;
}

Result<void> SwitchRegistry::describe(const rpc::Member& member,
                                      std::span<const std::byte> descriptor,
                                      std::span<const std::byte> shown) {
  Result<wire::CommDescriptor> parsed = wire::parse_descriptor(descriptor);
  if (!parsed) return parsed.error();
  if (Result<wire::CommDescriptor> readable = wire::parse_descriptor(shown); !readable) {
    return readable.error();
  }
  const std::scoped_lock lock(mutex_);
  Result<Session*> session = session_of(member);
  if (!session) return session.error();
  const std::uint64_t hash = wire::hash(*parsed).value;
  if ((*session)->shown.contains(hash)) return {};
  for (const auto& worker : workers_) {
    if (Result<void> defined = worker->define(member.session, *parsed); !defined) return defined;
  }
  (*session)->shown[hash].assign(reinterpret_cast<const char*>(shown.data()), shown.size());
  return {};
}

Result<void> SwitchRegistry::leave(const rpc::Member& member, std::uint64_t ops) {
  const std::scoped_lock lock(mutex_);
  Result<Session*> found = session_of(member);
  if (!found) return found.error();
  Session& session = **found;
  session.ranks[member.rank.value].left = true;
  tell_all(session, rpc::Left{member.rank, ops});
  const bool all_left = std::all_of(session.ranks.begin(), session.ranks.end(),
                                    [](const Participant& rank) { return rank.left; });
  if (all_left) end(session.id, std::nullopt);
  return {};
}

Result<void> SwitchRegistry::abort(const rpc::Member& member, const Error& reason) {
  const std::scoped_lock lock(mutex_);
  Result<Session*> session = session_of(member);
  if (!session) return session.error();
  end(member.session, Error{reason.code, (*session)->ranks[member.rank.value].name +
                                             " aborted the group: " + reason.message});
  return {};
}

void SwitchRegistry::take_mismatch(const switching::MismatchEvent& event) {
  const auto found = sessions_.find(event.session.value);
  if (found == sessions_.end()) return;
  const auto& known = found->second.shown;
  const auto first = known.find(event.first_descriptor.value);
  const auto second = known.find(event.second_descriptor.value);
  if (first == known.end() || second == known.end()) return;
  tell_all(found->second,
           rpc::Mismatched{event.first, event.second, first->second, second->second});
  end(event.session, Error{ErrorCode::mismatch, "ranks called different collectives"});
}

void SwitchRegistry::run() {
  for (;;) {
    std::deque<switching::MismatchEvent> reports;
    {
      std::unique_lock lock(reports_mutex_);
      reported_.wait(lock, [this] { return stopping_ || !reports_.empty(); });
      if (stopping_) return;
      reports.swap(reports_);
    }
    const std::scoped_lock lock(mutex_);
    for (const switching::MismatchEvent& event : reports) take_mismatch(event);
  }
}

rpc::Status SwitchRegistry::status() {
  rpc::Status status;
  status.workers = static_cast<std::uint32_t>(workers_.size());
  for (const auto& worker : workers_) {
    const SwitchWorker::Snapshot now = worker->snapshot();
    status.slots_in_use += now.slots_in_use;
    status.packets_received += now.counters.received;
    status.packets_accepted += now.counters.accepted;
    for (std::size_t i = 1; i < static_cast<std::size_t>(switching::Drop::count_); ++i) {
      const std::uint64_t count = now.counters.dropped[i];
      if (count != 0) status.packets_dropped[to_string(static_cast<switching::Drop>(i))] += count;
    }
  }
  const std::scoped_lock lock(mutex_);
  for (const auto& [id, session] : sessions_) {
    const auto present =
        std::count_if(session.ranks.begin(), session.ranks.end(),
                      [](const Participant& one) { return one.events != nullptr; });
    status.sessions.push_back({session.id, session.group,
                               static_cast<std::uint16_t>(session.ranks.size()),
                               static_cast<std::uint16_t>(present)});
  }
  return status;
}

}  // namespace cais::runtime
