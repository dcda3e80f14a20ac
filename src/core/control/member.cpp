#include "core/control/member.hpp"

namespace cais::control {
namespace {

using Deed = Response::Deed;
using Verdict = Member::Verdict;

Answer answer_to(const Order& order, Answer::Kind kind) {
  return {kind, order.lease, order.session, order.epoch, order.to, {}, {}};
}

Response stale(const Order& order, Lease newest) {
  Answer answer = answer_to(order, Answer::Kind::stale);
  answer.lease = newest;
  return {Deed::nothing, answer};
}

/// What follows from a verdict on an order that has this deed, and this answer when it is obeyed.
Response response_to(const Order& order, Verdict verdict, const Member& member, Deed deed,
                     Answer::Kind kind) {
  switch (verdict) {
    case Verdict::obey:
      return {deed, answer_to(order, kind)};
    case Verdict::again:
      return {Deed::nothing, answer_to(order, kind)};
    case Verdict::ahead: {
      Answer answer = answer_to(order, Answer::Kind::ahead);
      answer.epoch = member.epoch();
      return {Deed::nothing, answer};
    }
    case Verdict::stale:
      return stale(order, member.newest());
    case Verdict::late:
    case Verdict::unfenced:
      break;
  }
  return {};
}

}  // namespace

bool Member::hears(Lease lease) {
  if (lease < newest_) return false;
  newest_ = lease;
  return true;
}

Member::Verdict Member::fence(Lease lease, Epoch epoch) {
  if (!hears(lease)) return Verdict::stale;
  if (epoch < epoch_ || (epoch == epoch_ && !fenced_)) return behind(lease);
  const bool again = epoch == epoch_;
  epoch_ = epoch;
  fenced_ = true;
  by_ = lease;
  return again ? Verdict::again : Verdict::obey;
}

/// An epoch is begun once, by one controller: another one that counts to the same number may mean
/// other seqs by it.
Member::Verdict Member::begin(Lease lease, Epoch epoch) {
  if (!hears(lease)) return Verdict::stale;
  if (epoch < epoch_) return behind(lease);
  if (epoch > epoch_) return Verdict::unfenced;
  if (!fenced_) return lease == by_ ? Verdict::again : Verdict::ahead;
  fenced_ = false;
  by_ = lease;
  return Verdict::obey;
}

Member::Verdict Member::end(Lease lease) { return hears(lease) ? Verdict::obey : Verdict::stale; }

void Member::fingerprint(Fingerprint& walk) const {
  walk.number(epoch_.value | std::uint64_t{fenced_} << 16);
  walk.number(newest_.value);
  walk.number(by_.value);
}

Response RankMember::take(const Order& order) {
  switch (order.kind) {
    case Order::Kind::fail: {
      const Verdict verdict = member_.end(order.lease);
      const bool again = over_;
      over_ = over_ || verdict == Verdict::obey;
      return response_to(order, verdict, member_, again ? Deed::nothing : Deed::fail,
                         Answer::Kind::failed);
    }
    case Order::Kind::fence:
      if (over_) return {};
      return response_to(order, member_.fence(order.lease, order.epoch), member_, Deed::fence,
                         Answer::Kind::fenced);
    case Order::Kind::begin:
      if (over_) return {};
      return response_to(order, member_.begin(order.lease, order.epoch), member_, Deed::begin,
                         Answer::Kind::begun);
    case Order::Kind::close:
      break;  // for switches
  }
  return {};
}

void RankMember::fingerprint(Fingerprint& walk) const {
  member_.fingerprint(walk);
  walk.number(over_);
}

void SwitchMember::know(Lease lease) {
  if (lease <= newest_) return;
  newest_ = lease;
  last_ = 0;
}

void SwitchMember::open(SessionId session, Epoch epoch) {
  sessions_.insert_or_assign(session, Member(epoch, newest_));
}

const Member* SwitchMember::find(SessionId session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &found->second;
}

Response SwitchMember::take(const Order& order) {
  if (order.lease < newest_) return stale(order, newest_);
  know(order.lease);
  if (order.number <= last_) return {};
  last_ = order.number;
  const auto found = sessions_.find(order.session);
  const bool has = found != sessions_.end();
  switch (order.kind) {
    case Order::Kind::close:
      if (has) sessions_.erase(found);
      return {has ? Deed::close : Deed::nothing, answer_to(order, Answer::Kind::closed)};
    case Order::Kind::fence:
      // Where nothing is there is nothing to fence, and what is on its way to begin comes too late.
      if (!has) return {Deed::nothing, answer_to(order, Answer::Kind::fenced)};
      return response_to(order, found->second.fence(order.lease, order.epoch), found->second,
                         Deed::fence, Answer::Kind::fenced);
    case Order::Kind::begin:
      return begin(order);
    case Order::Kind::fail:
      break;  // for ranks
  }
  return {};
}

/// Whoever has nothing of the session, or an older epoch, need not be fenced: the ranks have left
/// that.
Response SwitchMember::begin(const Order& order) {
  const Epoch before(static_cast<std::uint16_t>(order.epoch.value - 1));
  Member& member = sessions_.try_emplace(order.session, before, newest_).first->second;
  Verdict verdict = member.begin(order.lease, order.epoch);
  if (verdict == Verdict::unfenced) {
    member.fence(order.lease, order.epoch);
    verdict = member.begin(order.lease, order.epoch);
  }
  return response_to(order, verdict, member, Deed::begin, Answer::Kind::begun);
}

void SwitchMember::fingerprint(Fingerprint& walk) const {
  walk.number(newest_.value);
  walk.number(last_);
  walk.number(sessions_.size());
  for (const auto& [session, member] : sessions_) {
    walk.number(session.value);
    member.fingerprint(walk);
  }
}

}  // namespace cais::control
