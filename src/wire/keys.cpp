#include "wire/keys.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "wire/bytes.hpp"
#include "wire/chacha20.hpp"

namespace cais::wire {
namespace {

/// What a secret is used for: no two uses of one may give the same bytes.
enum class Purpose : std::uint32_t {
  // Of the session's secret; the number is 0 or a rank.
  group_secret = 1,
  rank_secret = 2,
  // Of the group's or a rank's; the number is an epoch.
  tag = 3,
  payload_blocks = 4,
  payload_digest = 5,
  checksum = 6,
  // Of the session's; the number is 0.
  tree_secret = 7,
};

/// The keystream of ChaCha20 under (purpose, number): as good as random, for every pair anew.
class Stream {
 public:
  Stream(const Secret& secret, Purpose purpose, std::uint32_t number)
      : secret_(secret), nonce_{static_cast<std::uint32_t>(purpose), number, 0} {}

  template <std::unsigned_integral T>
  T next() {
    if (at_ == chacha20_block_bytes) {
      block_ = chacha20_block(secret_.bytes, nonce_, counter_++);
      at_ = 0;
    }
    const T value = load_little<T>(&block_[at_]);
    at_ += sizeof(T);
    return value;
  }

 private:
  const Secret& secret_;
  const std::array<std::uint32_t, 3> nonce_;
  std::uint32_t counter_ = 0;
  std::array<std::byte, chacha20_block_bytes> block_;
  std::size_t at_ = chacha20_block_bytes;
};

Secret secret_from(const Secret& session, Purpose purpose, std::uint32_t number) {
  Stream stream(session, purpose, number);
  Secret secret;
  for (std::byte& byte : secret.bytes) byte = std::byte{stream.next<std::uint8_t>()};
  return secret;
}

SipKey sip_key_from(const Secret& secret, Purpose purpose, Epoch epoch) {
  Stream stream(secret, purpose, epoch.value);
  SipKey key;
  key.k0 = stream.next<std::uint64_t>();
  key.k1 = stream.next<std::uint64_t>();
  return key;
}

}  // namespace

const char* to_string(Tags tags) { return tags == Tags::keyed ? "keyed" : "checksum"; }

bool equal(const Secret& a, const Secret& b) {
  std::byte differ{};
  for (std::size_t i = 0; i < a.bytes.size(); ++i) differ |= a.bytes[i] ^ b.bytes[i];
  return differ == std::byte{};
}

RankSecrets secrets_of(const Secret& session, Rank rank) {
  return {secret_from(session, Purpose::rank_secret, rank.value),
          secret_from(session, Purpose::group_secret, 0)};
}

std::shared_ptr<const Keys::Derived> Keys::derive(std::shared_ptr<Derived> from, Epoch epoch) {
  Derived& keys = *from;
  keys.from_switches = sip_key_from(keys.group, Purpose::tag, epoch);
  for (std::size_t i = 0; i < keys.ranks; ++i) {
    keys.from_rank[i] = sip_key_from(keys.secret_of[i], Purpose::tag, epoch);
  }
  keys.from_children = sip_key_from(keys.tree, Purpose::tag, epoch);
  Stream blocks(keys.group, Purpose::payload_blocks, epoch.value);
  for (std::uint32_t& word : keys.payload.nh.words) word = blocks.next<std::uint32_t>();
  keys.payload.sip = sip_key_from(keys.group, Purpose::payload_digest, epoch);
  keys.seed = sip_key_from(keys.group, Purpose::checksum, epoch).k0;
  return from;
}

Keys Keys::of_session(Tags tags, const Secret& session, std::uint16_t ranks, Epoch epoch) {
  CAIS_CHECK(ranks <= ranks_max);
  auto known = std::make_shared<Derived>();
  known->tags = tags;
  known->group = secret_from(session, Purpose::group_secret, 0);
  known->in_tree = true;
  known->tree = secret_from(session, Purpose::tree_secret, 0);
  known->ranks = ranks;
  for (std::uint16_t rank = 0; rank < ranks; ++rank) {
    known->secret_of[rank] = secret_from(session, Purpose::rank_secret, rank);
  }
  Keys keys;
  keys.derived_ = derive(std::move(known), epoch);
  return keys;
}

Keys Keys::of_rank(Tags tags, const RankSecrets& secrets, Rank rank, Epoch epoch) {
  auto known = std::make_shared<Derived>();
  known->tags = tags;
  known->group = secrets.group;
  known->first = rank;
  known->ranks = 1;
  known->secret_of[0] = secrets.own;
  Keys keys;
  keys.derived_ = derive(std::move(known), epoch);
  return keys;
}

Keys Keys::at(Epoch epoch) const {
  CAIS_CHECK(derived_ != nullptr);
  Keys keys;
  keys.derived_ = derive(std::make_shared<Derived>(*derived_), epoch);
  return keys;
}

}  // namespace cais::wire
