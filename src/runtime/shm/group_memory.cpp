#include "runtime/shm/group_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/round_up.hpp"
#include "io/shm/futex.hpp"

namespace cais::runtime::shm {
namespace {

constexpr int looks_for_failure = 200;  // 20 ms: a message is written in microseconds

/// Where each part of the segment begins.
struct Offsets {
  std::size_t arrivals, descriptors, progress, claims, done, staging, end;
};

Offsets offsets_of(const GroupShape& shape) {
  const std::size_t ranks = shape.ranks;
  Offsets at{};
  at.arrivals = round_up(sizeof(Header), page_bytes);
  at.descriptors = at.arrivals + arrival_generations * ranks * sizeof(Arrival);
  at.progress = at.descriptors + arrival_generations * ranks * sizeof(ArrivalDescriptor);
  at.claims = at.progress + ranks * sizeof(Progress);
  at.done = at.claims + claims_max * sizeof(Claim);
  at.staging = round_up(at.done + sizeof(Done), page_bytes);
  at.end = at.staging + ranks * shape.staging_bytes;
  return at;
}

}  // namespace

std::size_t GroupMemory::bytes_needed(const GroupShape& shape) { return offsets_of(shape).end; }

GroupMemory::GroupMemory(io::Segment segment, const GroupShape& shape)
    : segment_(std::move(segment)), shape_(shape) {
  CAIS_CHECK(segment_.bytes() >= bytes_needed(shape));
  const Offsets at = offsets_of(shape);
  std::byte* base = segment_.data();
  header_ = reinterpret_cast<Header*>(base);
  arrivals_ = reinterpret_cast<Arrival*>(base + at.arrivals);
  descriptors_ = reinterpret_cast<ArrivalDescriptor*>(base + at.descriptors);
  progress_ = reinterpret_cast<Progress*>(base + at.progress);
  claims_ = reinterpret_cast<Claim*>(base + at.claims);
  done_ = reinterpret_cast<Done*>(base + at.done);
  staging_ = base + at.staging;
}

void GroupMemory::ring(Bell& bell) {
  bell.rings.fetch_add(1, std::memory_order_seq_cst);
  io::futex_wake_all(bell.rings);
}

void GroupMemory::sleep(const Blocked& blocked, Duration limit) const {
  Bell& bell = *blocked.bell;
  bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
  const std::uint32_t rings = bell.rings.load(std::memory_order_seq_cst);
  if (blocked.word->load(std::memory_order_seq_cst) < blocked.at_least && !failed()) {
    io::futex_wait(bell.rings, rings, limit);
  }
  bell.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void GroupMemory::fail(const Error& error) const {
  if (header_->failure_claimed.exchange(1, std::memory_order_acq_rel) != 0) {
    for (int look = 0; look < looks_for_failure && !failed(); ++look) ::usleep(100);
    if (failed()) return;  // else who claimed it has died on the way, and we take its place
  }
  const std::size_t bytes = std::min(error.message.size(), header_->message.size());
  std::memcpy(header_->message.data(), error.message.data(), bytes);
  header_->message_bytes = static_cast<std::uint32_t>(bytes);
  header_->failed.store(1u + static_cast<std::uint32_t>(error.code), std::memory_order_seq_cst);
  for (std::size_t rank = 0; rank < shape_.ranks; ++rank) ring(progress_[rank].bell);
  ring(done_->bell);
}

Error GroupMemory::failure() const {
  const std::uint32_t code = header_->failed.load(std::memory_order_acquire);
  CAIS_CHECK(code != 0);
  const std::size_t bytes = std::min<std::size_t>(header_->message_bytes, header_->message.size());
  return Error{static_cast<ErrorCode>(code - 1), std::string(header_->message.data(), bytes)};
}

}  // namespace cais::runtime::shm
