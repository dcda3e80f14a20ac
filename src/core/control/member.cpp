#include "core/control/member.hpp"

namespace cais::control {

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

void Hearing::know(Lease lease) {
  if (lease <= newest_) return;
  newest_ = lease;
  last_ = 0;
}

Hearing::Verdict Hearing::take(Lease lease, std::uint64_t number) {
  if (lease < newest_) return Verdict::stale;
  know(lease);
  if (number <= last_) return Verdict::overtaken;
  last_ = number;
  return Verdict::hear;
}

}  // namespace cais::control
