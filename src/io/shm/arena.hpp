// io/shm/arena.hpp — memory that ranks on this machine can map: a pooling allocator over one sparse
// memfd, so that peers add in each other's tensors with no copy. Nothing stands in /dev/shm; the
// kernel takes the memory back when the last process that maps it is gone, however it ended.
//
// Blocks are multiples of 4096 bytes, aligned to 4096. Free blocks grow together. Memory of freed
// blocks is kept for reuse up to `cached_bytes_max`; beyond that its pages go back to the kernel.
// The kernel's huge pages are asked for (they come where /sys/kernel/mm/transparent_hugepage/
// shmem_enabled is `advise` or more).
//
// Fork. A child's writes never reach its parent or the parent's peers: right after fork(), before
// the child runs anything else, its view of the arena becomes private.
//   - Up to `fork_snapshot_bytes_max` of allocated blocks are copied at the fork: the child sees
//     what stood there, as with malloc's memory.
//   - With more than that allocated, the child shares pages with its parent until the child writes
//     to them: what the parent writes later shows in pages that the child has not written to, and
//     pages of blocks that the parent frees may change or turn to zeros there. (A parent that
//     leaves its data alone, as one with DataLoader workers does, sees no difference.)
//   - The child's arena is `detached`: its allocations are private memory that no peer can map
//     (`offset_of` says so), and work in every other way. So are those of its own children.
// vfork and posix_spawn run no handlers and need none; a bare clone(2) that shares no memory must
// not touch the arena.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "io/shm/ranges.hpp"

namespace cais::io {

inline constexpr std::size_t arena_block_bytes = 4096;
inline constexpr std::size_t arena_cached_bytes_max = std::size_t{1} << 30;
inline constexpr std::size_t fork_snapshot_bytes_max = std::size_t{64} << 20;

struct ArenaStats {
  std::size_t allocated_bytes;  // in blocks that are in use
  std::size_t cached_bytes;     // in free blocks whose pages are kept
  std::size_t blocks;           // in use
};

/// Thread-safe.
class Arena {
 public:
  /// Reserves `bytes_max` of address space (0: twice the machine's memory) and no memory. Freed
  /// memory is kept up to `cached_bytes_max`. system: the kernel refuses the memfd or the mapping.
  static Result<std::unique_ptr<Arena>> create(
      std::size_t bytes_max, std::size_t cached_bytes_max = arena_cached_bytes_max);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();  // every block must be out of use

  /// A block of at least `bytes`; what it holds is undefined (data that this process freed, or
  /// zeros). Null when no range of the address space is long enough. The memory itself is taken
  /// at first touch: as with any overcommitted memory, the kernel ends a process when none is left.
  void* allocate(std::size_t bytes);
  /// The same, and every byte is zero.
  void* allocate_zeroed(std::size_t bytes);
  /// Takes back what allocate gave; null is let pass.
  void deallocate(void* memory);

  /// Whether the address lies in the arena.
  bool contains(const void* p) const;
  /// The place of [p, p + bytes) in the memfd, for peers that map it; nothing when the bytes do
  /// not lie in the arena or the arena is detached.
  std::optional<std::size_t> offset_of(const void* p, std::size_t bytes) const;

  int fd() const { return fd_; }  // -1 when detached
  std::byte* base() const { return base_; }
  std::size_t capacity() const { return capacity_; }
  bool detached() const { return fd_ < 0; }
  ArenaStats stats() const;

 private:
  friend class ArenaForkHandlers;
  Arena(int fd, std::byte* base, std::size_t capacity, std::size_t cached_bytes_max);

  struct Block {
    std::byte* memory;
    std::size_t bytes;
    bool zero;  // every byte is known to be zero
  };
  std::optional<Block> take_block(std::size_t bytes);
  std::optional<Range> take_free(std::size_t bytes, bool* zero);
  void purge(std::size_t cached_bytes_max);
  bool release_pages(Range range);
  std::vector<Range> used_ranges() const;

  // Around fork(), with `mutex_` held from before until after it (arena_fork.cpp).
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();
  void take_snapshot();
  bool map_private_zeros(Range range);
  void add_private_free(Range range);
  void adopt_snapshot();
  void share_until_written();

  int fd_;
  std::byte* const base_;
  const std::size_t capacity_;
  const std::size_t cached_bytes_max_;

  mutable std::mutex mutex_;
  RangeSet clean_;                                     // free, without pages: reads as zeros
  RangeSet dirty_;                                     // free, with pages of old data
  std::unordered_map<std::size_t, std::size_t> used_;  // offset → bytes
  std::size_t used_bytes_ = 0;
  std::size_t used_end_ = 0;       // nothing was ever used from here on
  std::byte* snapshot_ = nullptr;  // [base, used_end) as it stood at the fork under way
};

/// The arena of this process, made by the first call, with its `bytes_max`, and never destroyed:
/// tensors may outlive every static object. Null when it cannot be made.
Arena* process_arena(std::size_t bytes_max = 0);

}  // namespace cais::io
