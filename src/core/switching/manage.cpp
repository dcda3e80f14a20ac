// The management interface of the switch: sessions, their programs (P14), where ranks speak from.
#include <algorithm>
#include <bit>
#include <string>

#include "base/first_bits.hpp"
#include "core/switching/state.hpp"
#include "nir/targets/host/lower.hpp"

namespace cais::switching {
namespace {

Error refused(std::string what) { return {ErrorCode::invalid_argument, std::move(what)}; }

Error no_such(SessionId session) {
  return {ErrorCode::invalid_argument,
          "the switch has no session " + std::to_string(session.value) + "; open it first"};
}

/// P9: the children of a switch share out the ranks below it; a root is above all of them.
Result<void> validate_place(const TreePlace& place, std::uint16_t ranks) {
  if (place.level < 1 || place.level > levels_max) {
    return refused("a tree has 1 to " + std::to_string(levels_max) +
                   " levels of switches, so no switch at level " + std::to_string(place.level));
  }
  if (place.children.empty()) {
    if (place.level == 1 && !place.has_parent) return {};
    return refused("a switch in a tree is told the ranks below each of its children");
  }
  RankSet members = 0;
  for (const RankSet below : place.children) {
    if (below == 0) return refused("a child without ranks below it has no part in a session");
    if ((below & ~all_of(ranks)) != 0) {
      return refused("a child has ranks below it that the session of " + std::to_string(ranks) +
                     " has not");
    }
    if ((below & members) != 0) return refused("a rank is below two children of one switch");
    if (place.level == 1 && !std::has_single_bit(below)) {
      return refused("each child of a switch at level 1 is one rank");
    }
    members |= below;
  }
  if (!place.has_parent && members != all_of(ranks)) {
    return refused(
        "a switch without a parent stands above all ranks; name its parent, or the rest");
  }
  return {};
}

Result<void> validate(const SessionConfig& config) {
  if (config.session == SessionId(0)) return refused("session 0 is never valid; number from 1");
  if (config.ranks < 1 || config.ranks > ranks_max) {
    return refused("a session has 1 to " + std::to_string(ranks_max) + " ranks, not " +
                   std::to_string(config.ranks));
  }
  if (config.lanes < 1 || config.lanes > lanes_max) {
    return refused("a session has 1 to " + std::to_string(lanes_max) + " lanes, not " +
                   std::to_string(config.lanes));
  }
  if ((config.lanes_served & ~first_bits(config.lanes)) != 0) {
    return refused("lanes_served names a lane beyond the session's " +
                   std::to_string(config.lanes));
  }
  if (!std::has_single_bit(config.window_fragments) ||
      config.window_fragments > window_fragments_max) {
    return refused("window_fragments is a power of two up to " +
                   std::to_string(window_fragments_max) + ", not " +
                   std::to_string(config.window_fragments));
  }
  if (config.payload_bytes_max > payload_bytes_max) {
    return refused("payload_bytes_max is at most " + std::to_string(payload_bytes_max) + ", not " +
                   std::to_string(config.payload_bytes_max));
  }
  return validate_place(config.place, config.ranks);
}

/// P8: the type in which sums travel between switches, so that they are rounded once, at the root.
DType partial_type(const nir::Plan& plan) { return plan.accumulator; }

/// What this switch makes of the contributions to a reduction: the root the result, others a
/// partial, which is divided by nothing yet.
numeric::Reduction reduction_of(const nir::Plan& plan, const TreePlace& place) {
  const bool averages = plan.reduce_op == ReduceOp::avg;
  return {.op = averages && place.has_parent ? ReduceOp::sum : plan.reduce_op,
          .input = place.level > 1 ? partial_type(plan) : plan.dtype,
          .output = place.has_parent ? partial_type(plan) : plan.dtype,
          .divisor = plan.ranks};
}

Result<Program> compile(const wire::CommDescriptor& descriptor, const SessionConfig& config) {
  Result<nir::Plan> plan = nir::lower(descriptor);
  if (!plan) return plan.error();
  if (plan->ranks != config.ranks || plan->lanes > config.lanes ||
      plan->fragment_bytes > config.payload_bytes_max) {
    return refused("the descriptor (" + wire::to_string(descriptor) + ", " +
                   std::to_string(plan->lanes) + " lanes, fragments of " +
                   std::to_string(plan->fragment_bytes) + " bytes) does not fit session " +
                   std::to_string(config.session.value) + " of " + std::to_string(config.ranks) +
                   " ranks, " + std::to_string(config.lanes) + " lanes, fragments up to " +
                   std::to_string(config.payload_bytes_max) + " bytes");
  }
  Program program;
  program.plan = *plan;
  program.elements = plan->fragment_bytes / size_of(plan->dtype);
  program.chunks_per_unit =
      (plan->fragments_per_unit + plan->fragments_per_chunk - 1) / plan->fragments_per_chunk;
  program.input_bytes = program.output_bytes = plan->fragment_bytes;
  if (plan->reduce_op != ReduceOp::none && plan->fragment_bytes != 0) {
    const numeric::Reduction reduction = reduction_of(*plan, config.place);
    program.input_bytes = program.elements * size_of(reduction.input);
    program.output_bytes = program.elements * size_of(reduction.output);
    if (std::max(program.input_bytes, program.output_bytes) > config.payload_bytes_max) {
      return refused("partials of " + wire::to_string(descriptor) + " travel as " +
                     std::string(to_string(partial_type(*plan))) +
                     " between switches, in more than the session's " +
                     std::to_string(config.payload_bytes_max) +
                     " bytes a fragment; use fragments half as long");
    }
    program.reducer = numeric::Reducer::find(reduction);
    if (!program.reducer) {
      return Error{ErrorCode::unsupported,
                   "the switch has no kernel for " + wire::to_string(descriptor)};
    }
  }
  return program;
}

}  // namespace

Result<void> Switch::open(const SessionConfig& config) {
  if (auto valid = validate(config); !valid) return valid;
  if (state_->find(config.session) != nullptr) {
    return refused("session " + std::to_string(config.session.value) + " is open already");
  }
  if (state_->by_id.size() >= sessions_max) {
    return Error{
        ErrorCode::resource_exhausted,
        "the switch serves " + std::to_string(sessions_max) + " sessions already; close one"};
  }
  auto& sessions = state_->sessions;
  auto place = std::find(sessions.begin(), sessions.end(), std::nullopt);
  if (place == sessions.end()) place = sessions.emplace(place);
  place->emplace(config);
  state_->by_id[config.session] = static_cast<std::uint32_t>(place - sessions.begin());
  return {};
}

Result<void> Switch::define(SessionId id, const wire::CommDescriptor& descriptor) {
  Session* session = state_->find(id);
  if (session == nullptr) return no_such(id);
  const DescriptorHash hash = wire::hash(descriptor);
  if (session->by_hash.contains(hash)) return {};
  if (session->programs.size() >= descriptors_per_session_max) {
    return Error{ErrorCode::resource_exhausted,
                 "session " + std::to_string(id.value) + " has " +
                     std::to_string(descriptors_per_session_max) +
                     " descriptors already; use fewer shapes, or another group"};
  }
  Result<Program> program = compile(descriptor, session->config);
  if (!program) return program.error();
  session->by_hash[hash] = static_cast<std::uint32_t>(session->programs.size());
  session->programs.push_back(std::move(*program));
  return {};
}

Result<void> Switch::bind(SessionId id, Rank rank, Port port) {
  Session* session = state_->find(id);
  if (session == nullptr) return no_such(id);
  const std::uint16_t ranks = session->config.ranks;
  if (rank.value >= ranks) {
    return refused("session " + std::to_string(id.value) + " has ranks 0 to " +
                   std::to_string(ranks - 1) + ", not " + std::to_string(rank.value));
  }
  if (!contains(session->members, rank)) {
    return refused("rank " + std::to_string(rank.value) + " is not below this switch in session " +
                   std::to_string(id.value));
  }
  const Rank child = session->child_of[rank.value].name;
  session->ports[child.value] = port;
  session->bound |= only(child);
  return {};
}

Result<void> Switch::bind_parent(SessionId id, Port port) {
  Session* session = state_->find(id);
  if (session == nullptr) return no_such(id);
  if (!session->has_parent()) {
    return refused("session " + std::to_string(id.value) +
                   " was opened without a parent of this switch");
  }
  session->parent = port;
  return {};
}

Result<void> Switch::fence(SessionId id, Epoch epoch) {
  Session* session = state_->find(id);
  if (session == nullptr) return no_such(id);
  const Epoch now = session->config.epoch;
  if (epoch == now && session->fenced) return {};
  if (epoch <= now) {
    return refused("session " + std::to_string(id.value) + " has epoch " +
                   std::to_string(now.value) + " already; " + std::to_string(epoch.value) +
                   " is not newer");
  }
  state_->forget_fragments(id);
  for (auto& lane : session->lanes) lane.reset();
  session->refusal.reset();
  session->config.epoch = epoch;
  session->config.keys = session->config.keys.at(epoch);
  session->fenced = true;
  return {};
}

Result<void> Switch::resume(SessionId id, Epoch epoch, std::uint64_t lanes_served,
                            std::span<const Seq> from) {
  Session* session = state_->find(id);
  if (session == nullptr) return no_such(id);
  if (!session->fenced || epoch != session->config.epoch) {
    return refused("session " + std::to_string(id.value) + " is not fenced for epoch " +
                   std::to_string(epoch.value) + "; fence it first");
  }
  if (from.size() != session->lanes.size()) {
    return refused("session " + std::to_string(id.value) + " has " +
                   std::to_string(session->lanes.size()) + " lanes, not " +
                   std::to_string(from.size()));
  }
  SessionConfig config = session->config;
  config.lanes_served = lanes_served;
  if (auto valid = validate(config); !valid) return valid;
  session->config = config;
  for (std::uint8_t l = 0; l < config.lanes; ++l) {
    if ((lanes_served >> l & 1) != 0) session->lanes[l].emplace(config, Lane(l), from[l]);
  }
  session->fenced = false;
  return {};
}

void Switch::close(SessionId id) {
  if (state_->find(id) == nullptr) return;
  state_->forget_fragments(id);
  state_->sessions[state_->by_id[id]].reset();
  state_->by_id.erase(id);
}

/// What waits to be sent, and the count of open slots: all that lies outside the session itself.
void Switch::State::forget_fragments(SessionId id) {
  for (const auto& lane : find(id)->lanes) {
    if (!lane) continue;
    for (const Slot& slot : lane->slots) slots_open -= slot.state == Slot::State::open;
  }
  outgoing.forget(by_id[id]);
}

}  // namespace cais::switching
