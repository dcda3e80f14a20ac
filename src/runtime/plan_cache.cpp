#include "runtime/plan_cache.hpp"

#include <algorithm>
#include <bit>

#include "nir/targets/host/lower.hpp"

namespace cais::runtime {
namespace {

/// FNV-1a over the group's name and size: the same at all ranks.
std::uint64_t group_hash(const GroupConfig& config) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : config.name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return (hash ^ config.ranks) * 0x100000001b3u;
}

}  // namespace

GroupTraits traits_of(const Settings& settings, const GroupConfig& config,
                      const Transport& transport) {
  return {.ranks = config.ranks,
          .group = group_hash(config),
          .fragment_bytes = transport.fragment_bytes(),
          .chunk_bytes = settings.chunk_bytes,
          .lanes = transport.lanes()};
}

static_assert(std::has_single_bit(known_collectives_max), "the index is a mask");

PlanCache::PlanCache(const GroupTraits& traits)
    : traits_(traits), entries_(known_collectives_max) {}

std::size_t PlanCache::index_of(const Key& key) {
  std::uint64_t hash = key.count;
  hash = hash << 8 ^ static_cast<std::uint64_t>(key.kind);
  hash = hash << 8 ^ static_cast<std::uint64_t>(key.dtype);
  hash = hash << 4 ^ static_cast<std::uint64_t>(key.reduce_op);
  for (std::size_t dim = 0; dim < key.dims; ++dim) hash = hash * 31 + key.shape[dim];
  hash += key.root.value;
  return (hash * 0x9e3779b97f4a7c15u) >> 56 & (known_collectives_max - 1);
}

Result<const KnownCollective*> PlanCache::find(const Collective& collective) {
  Key key{.count = collective.count,
          .kind = collective.kind,
          .reduce_op = collective.reduce_op,
          .dtype = collective.dtype,
          .dims = collective.dims,
          .shard_dim = collective.shard_dim,
          .root = collective.root};
  if (key.dims > wire::dims_max) {
    return Error{ErrorCode::invalid_argument, "a collective describes a tensor of " +
                                                  std::to_string(key.dims) + " dims, more than " +
                                                  std::to_string(wire::dims_max)};
  }
  std::copy_n(collective.shape.begin(), key.dims, key.shape.begin());
  Entry& entry = entries_[index_of(key)];
  if (!entry.used || entry.key != key) {
    auto made = make(key);
    if (!made) return made.error();
    entry = Entry{true, key, *made};
  }
  return &entry.known;
}

Result<KnownCollective> PlanCache::make(const Key& key) const {
  wire::DescriptorSpec spec;
  spec.kind = key.kind;
  spec.reduce_op = key.reduce_op;
  spec.dtype = key.dtype;
  spec.ranks = traits_.ranks;
  spec.root = key.root;
  spec.unit_elements = key.count;
  spec.shape = {key.shape.data(), key.dims};
  spec.shard_dim = key.shard_dim;
  spec.fragment_bytes = traits_.fragment_bytes;
  spec.chunk_bytes = traits_.chunk_bytes;
  spec.lanes = traits_.lanes;
  spec.group = traits_.group;
  auto descriptor = wire::make_descriptor(spec);
  if (!descriptor) return descriptor.error();
  auto plan = nir::lower(*descriptor);
  if (!plan) return plan.error();
  return KnownCollective{*descriptor, wire::hash(*descriptor), *plan};
}

}  // namespace cais::runtime
