// runtime/plan_cache.hpp — from a collective to its descriptor, hash and plan: made once per
// distinct collective, then a table look-up (P14, N3).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "nir/plan.hpp"
#include "runtime/collective.hpp"
#include "runtime/communicator.hpp"
#include "runtime/settings.hpp"
#include "runtime/transport.hpp"
#include "wire/descriptor.hpp"

namespace cais::runtime {

inline constexpr std::size_t known_collectives_max = 256;  // a later one may displace an older one

/// What all collectives of a group have in common.
struct GroupTraits {
  std::uint16_t ranks = 1;
  std::uint64_t group = 0;  // hash of the members
  std::uint32_t fragment_bytes = 0;
  std::uint32_t chunk_bytes = 0;
  std::uint8_t lanes = 1;
};

/// Those of `config`'s group when `transport` carries it.
GroupTraits traits_of(const Settings& settings, const GroupConfig& config,
                      const Transport& transport);

struct KnownCollective {
  wire::CommDescriptor descriptor{};
  DescriptorHash hash{};
  nir::Plan plan;
};

/// Not thread-safe.
class PlanCache {
 public:
  explicit PlanCache(const GroupTraits& traits);
  /// Valid until the next call. The error says what is wrong with the collective.
  Result<const KnownCollective*> find(const Collective& collective);

 private:
  /// All of a Collective that its descriptor depends on.
  struct Key {
    std::uint64_t count = 0;
    OpKind kind = OpKind::barrier;
    ReduceOp reduce_op = ReduceOp::none;
    DType dtype = DType::uint8;
    std::uint8_t dims = 0;
    std::int8_t shard_dim = -1;
    Rank root{};
    std::array<std::uint64_t, wire::dims_max> shape{};
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    bool used = false;
    Key key;
    KnownCollective known;
  };
  static std::size_t index_of(const Key& key);
  Result<KnownCollective> make(const Key& key) const;

  GroupTraits traits_;
  std::vector<Entry> entries_;
};

}  // namespace cais::runtime
