// The payloads of want, waiting and mismatch packets.
#include "wire/bytes.hpp"
#include "wire/header.hpp"

namespace cais::wire {

std::array<std::byte, stamp_bytes> serialize(Stamp stamp) {
  std::array<std::byte, stamp_bytes> out;
  store_network(out.data(), stamp);
  return out;
}

bool parse(std::span<const std::byte> payload, Stamp& out) {
  if (payload.size() != stamp_bytes) return false;
  out = load_network<Stamp>(payload.data());
  return true;
}

std::array<std::byte, want_bytes> serialize(const Want& want) {
  std::array<std::byte, want_bytes> out;
  store_network(out.data(), want.ranks);
  store_network(out.data() + 8, want.stamp);
  return out;
}

bool parse(std::span<const std::byte> payload, Want& out) {
  if (payload.size() != want_bytes) return false;
  out.ranks = load_network<std::uint64_t>(payload.data());
  out.stamp = load_network<Stamp>(payload.data() + 8);
  return true;
}

std::array<std::byte, mismatch_bytes> serialize(const Mismatch& mismatch) {
  std::array<std::byte, mismatch_bytes> out{};
  store_network(out.data(), mismatch.first.value);
  store_network(out.data() + 2, mismatch.second.value);
  store_network(out.data() + 8, mismatch.first_descriptor.value);
  store_network(out.data() + 16, mismatch.second_descriptor.value);
  return out;
}

bool parse(std::span<const std::byte> payload, Mismatch& out) {
  if (payload.size() != mismatch_bytes) return false;
  const Rank first(load_network<std::uint16_t>(payload.data()));
  const Rank second(load_network<std::uint16_t>(payload.data() + 2));
  if (first.value >= ranks_max || second.value >= ranks_max) return false;
  out.first = first;
  out.second = second;
  out.first_descriptor = DescriptorHash(load_network<std::uint64_t>(payload.data() + 8));
  out.second_descriptor = DescriptorHash(load_network<std::uint64_t>(payload.data() + 16));
  return true;
}

}  // namespace cais::wire
