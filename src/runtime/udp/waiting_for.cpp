// Whom a UDP group waits for (P16), in words: what a time-out says.
#include <fmt/format.h>

#include "runtime/udp/members.hpp"
#include "runtime/udp/udp_session.hpp"

namespace cais::runtime {

std::string UdpSession::waiting_for() const {
  const std::scoped_lock lock(mutex_);
  const std::deque<UnderWay>& queue = under_way_.empty() ? waiting_ : under_way_;
  if (queue.empty()) return {};
  const Operation& step = *queue.front().operation;
  const Operation& oldest = step.callers();
  const std::string who =
      under_way_.empty()
          ? management_->not_yet_described(step.descriptor_hash) + " has not taken its descriptor"
          : who_is_late();
  return fmt::format("collective {}, {}: {}", oldest.op_seq, wire::to_string(oldest.descriptor),
                     who);
}

std::string UdpSession::who_is_late() const {
  const HeldUpBy late = endpoint_->held_up_by();
  std::string text;
  if (late.ranks != 0) text = names_in(config_.names, late.ranks) + " has not arrived";
  const auto add = [&](std::uint64_t servers, const char* what) {
    if (servers == 0) return;
    text += (text.empty() ? "" : "; ") + names_in(config_.server_names, servers) + what;
  };
  add(denied_by_, " says that it has no such session; was it started anew?");
  add(late.servers & ~denied_by_, " does not answer");
  return text.empty() ? "no switch has said yet whom it waits for" : text;
}

}  // namespace cais::runtime
