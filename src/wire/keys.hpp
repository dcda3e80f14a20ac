// wire/keys.hpp — what the tags of a session's packets are made and checked with (docs/wire.md,
// "Tag"; docs/threat-model.md).
//
//   session's secret ──┬─ group secret ─── epoch ──┬─ key of the switches → every rank
//                      │                           └─ key of the payload digest
//                      ├─ rank r's secret ─ epoch ─── key of rank r → its switch
//                      └─ tree secret ──── epoch ─── key of switches → their parents (P9)
//
// Whoever serves lanes has the session's secret. A rank that serves none has the group's and its
// own: it cannot speak as another rank, nor to a switch as a switch. The directions have different
// keys: a reflected packet is not taken. So do the epochs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/types.hpp"
#include "wire/payload_digest.hpp"
#include "wire/siphash.hpp"

namespace cais::wire {

/// What a tag proves; the same in all of a session.
enum class Tags : std::uint8_t {
  keyed = 0,     // that somebody who has the sender's key made the packet
  checksum = 1,  // that nothing was damaged by accident: for links that are trusted
};

const char* to_string(Tags tags);

/// 256 bits that nobody else can guess.
struct Secret {
  std::array<std::byte, 32> bytes{};
};
/// Takes as long whether they differ in the first byte or in none.
bool equal(const Secret& a, const Secret& b);

/// All that a rank must know which serves no lane.
struct RankSecrets {
  Secret own;
  Secret group;
};
RankSecrets secrets_of(const Secret& session, Rank rank);

/// The keys of a session in one epoch, of all its ranks or of one. They do not change; copies share
/// them.
class Keys {
 public:
  /// None: no tag is right, and none can be made.
  Keys() = default;
  static Keys of_session(Tags tags, const Secret& session, std::uint16_t ranks, Epoch epoch);
  static Keys of_rank(Tags tags, const RankSecrets& secrets, Rank rank, Epoch epoch);
  /// The same session's, and the same ranks', in another epoch.
  Keys at(Epoch epoch) const;

  explicit operator bool() const { return derived_ != nullptr; }
  Tags tags() const { return derived_->tags; }
  /// Of what switches send.
  const SipKey& of_switches() const { return derived_->from_switches; }
  /// Of what that rank sends; null: not known here.
  const SipKey* of_rank(Rank rank) const {
    const auto index = static_cast<std::size_t>(rank.value) - derived_->first.value;
    return index < derived_->ranks ? &derived_->from_rank[index] : nullptr;
  }
  /// Of what switches send to their parents; null: not known here.
  const SipKey* of_children() const {
    return derived_->in_tree ? &derived_->from_children : nullptr;
  }
  const PayloadKey& of_payloads() const { return derived_->payload; }
  /// Of checksums: it keeps sessions and epochs apart.
  std::uint64_t seed() const { return derived_->seed; }

 private:
  struct Derived {
    Tags tags;
    // What the rest follows from, with the epoch.
    Secret group;
    Rank first;  // ranks [first, first + ranks) are known
    std::size_t ranks;
    std::array<Secret, ranks_max> secret_of;
    bool in_tree;  // whether `tree` is known
    Secret tree;

    SipKey from_switches;
    std::array<SipKey, ranks_max> from_rank;
    SipKey from_children;
    PayloadKey payload;
    std::uint64_t seed;
  };
  static std::shared_ptr<const Derived> derive(std::shared_ptr<Derived> from, Epoch epoch);

  std::shared_ptr<const Derived> derived_;
};

}  // namespace cais::wire
