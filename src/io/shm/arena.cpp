// io/shm/arena.cpp — the allocator of the arena. What happens at a fork is in arena_fork.cpp.
#include "io/shm/arena.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/round_up.hpp"
#include "io/shm/arena_fork.hpp"

namespace cais::io {
namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// Large blocks come in eight sizes per power of two, so that blocks of about one size are
// interchangeable. The tail that nobody touches costs no memory.
std::size_t block_bytes(std::size_t bytes) {
  const std::size_t unit = std::max(arena_block_bytes, std::bit_floor(bytes) / 8);
  return round_up(std::max(bytes, std::size_t{1}), unit);
}

Error system_error(const char* what, std::size_t bytes) {
  return Error{ErrorCode::system,
               fmt::format("cannot {} {} bytes for the shared-memory arena: {}; lower "
                           "CAIS_ARENA_MAX_BYTES or raise the process's limits (ulimit -v, -f)",
                           what, bytes, std::strerror(errno))};
}

std::size_t machine_memory_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Maps the file at an address that huge pages can lie at.
std::byte* map_aligned(int fd, std::size_t bytes) {
  const std::size_t reserved = bytes + huge_page_bytes;
  void* area =
      mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (area == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(area);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t skip = round_up(address, huge_page_bytes) - address;
  std::byte* const base = begin + skip;
  if (skip > 0) munmap(begin, skip);
  if (skip < huge_page_bytes) munmap(base + bytes, huge_page_bytes - skip);
  if (mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) ==
      MAP_FAILED) {
    munmap(base, bytes);
    return nullptr;
  }
  madvise(base, bytes, MADV_HUGEPAGE);  // refused where the kernel has none: small pages then
  return base;
}

}  // namespace

Result<std::unique_ptr<Arena>> Arena::create(std::size_t bytes_max, std::size_t cached_bytes_max) {
  if (bytes_max == 0) bytes_max = 2 * machine_memory_bytes();
  const std::size_t capacity = round_up(bytes_max, arena_block_bytes);
  const int fd = memfd_create("cais-arena", MFD_CLOEXEC);
  if (fd < 0) return system_error("make a memfd of", capacity);
  if (ftruncate(fd, static_cast<off_t>(capacity)) != 0) {
    const Error error = system_error("size a memfd to", capacity);
    close(fd);
    return error;
  }
  std::byte* const base = map_aligned(fd, capacity);
  if (base == nullptr) {
    const Error error = system_error("map", capacity);
    close(fd);
    return error;
  }
  std::unique_ptr<Arena> arena(new Arena(fd, base, capacity, cached_bytes_max));
  follow_forks(*arena);
  return arena;
}

Arena::Arena(int fd, std::byte* base, std::size_t capacity, std::size_t cached_bytes_max)
    : fd_(fd), base_(base), capacity_(capacity), cached_bytes_max_(cached_bytes_max) {
  clean_.insert({0, capacity});
}

Arena::~Arena() {
  unfollow_forks(*this);
  munmap(base_, capacity_);
  if (fd_ >= 0) close(fd_);
}

// Prefers pages that are there already; puts the free ranges together before it gives up.
std::optional<Range> Arena::take_free(std::size_t bytes, bool* zero) {
  *zero = false;
  std::optional<Range> range = dirty_.take(bytes);
  if (range) return range;
  *zero = true;
  range = clean_.take(bytes);
  if (range || dirty_.empty()) return range;
  purge(0);
  return clean_.take(bytes);
}

std::optional<Arena::Block> Arena::take_block(std::size_t bytes) {
  if (bytes > capacity_) return std::nullopt;
  bool zero = false;
  const std::lock_guard lock(mutex_);
  const std::optional<Range> range = take_free(block_bytes(bytes), &zero);
  if (!range) return std::nullopt;
  used_.emplace(range->offset, range->bytes);
  used_bytes_ += range->bytes;
  used_end_ = std::max(used_end_, range->end());
  return Block{base_ + range->offset, range->bytes, zero};
}

void* Arena::allocate(std::size_t bytes) {
  const std::optional<Block> block = take_block(bytes);
  return block ? block->memory : nullptr;
}

void* Arena::allocate_zeroed(std::size_t bytes) {
  const std::optional<Block> block = take_block(bytes);
  if (!block) return nullptr;
  if (!block->zero) std::memset(block->memory, 0, block->bytes);
  return block->memory;
}

void Arena::deallocate(void* memory) {
  if (memory == nullptr) return;
  CAIS_CHECK(contains(memory));
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(memory) - base_);
  const std::lock_guard lock(mutex_);
  const auto block = used_.find(offset);
  CAIS_CHECK(block != used_.end());  // not a block, or freed twice
  const Range range{offset, block->second};
  used_.erase(block);
  used_bytes_ -= range.bytes;
  dirty_.insert(range);
  purge(cached_bytes_max_);
}

// Gives pages back, of the largest ranges first: the fewest system calls.
void Arena::purge(std::size_t cached_bytes_max) {
  while (dirty_.bytes() > cached_bytes_max) {
    const std::size_t excess = round_up(dirty_.bytes() - cached_bytes_max, arena_block_bytes);
    const Range largest = *dirty_.take_largest();
    const std::size_t keep = largest.bytes - std::min(largest.bytes, excess);
    const Range released{largest.offset + keep, largest.bytes - keep};
    if (keep > 0) dirty_.insert({largest.offset, keep});
    if (!release_pages(released)) {
      dirty_.insert(released);
      return;
    }
    clean_.insert(released);
  }
}

// True when the range reads as zeros from now on.
bool Arena::release_pages(Range range) {
  if (detached()) return map_private_zeros(range);
  return fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                   static_cast<off_t>(range.offset), static_cast<off_t>(range.bytes)) == 0;
}

bool Arena::contains(const void* p) const {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  const auto begin = reinterpret_cast<std::uintptr_t>(base_);
  return address >= begin && address - begin < capacity_;
}

std::optional<std::size_t> Arena::offset_of(const void* p, std::size_t bytes) const {
  if (detached() || !contains(p)) return std::nullopt;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(p) - base_);
  if (bytes > capacity_ - offset) return std::nullopt;
  return offset;
}

ArenaStats Arena::stats() const {
  const std::lock_guard lock(mutex_);
  return {used_bytes_, dirty_.bytes(), used_.size()};
}

std::vector<Range> Arena::used_ranges() const {
  std::vector<Range> ranges;
  ranges.reserve(used_.size());
  for (const auto& [offset, bytes] : used_) ranges.push_back({offset, bytes});
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.offset < b.offset; });
  return ranges;
}

Arena* process_arena(std::size_t bytes_max) {
  static Arena* const arena = [bytes_max]() -> Arena* {
    Result<std::unique_ptr<Arena>> made = Arena::create(bytes_max);
    return made.ok() ? std::move(made).value().release() : nullptr;
  }();
  return arena;
}

}  // namespace cais::io
