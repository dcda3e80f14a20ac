// base/buffer.hpp — receive buffers that packets are views of, and the bounded pool they come from.
//
// A receive fills one buffer with one packet or, under GRO, with a train of them. A switch keeps a
// contribution in the buffer that it came in until the slot has been summed; the buffer goes back
// to its pool when the last packet that points into it is gone. One pool belongs to one thread: the
// reference counts are plain integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace cais {

class BufferPool;

/// One buffer of a pool; counted by the BufferRefs that point at it.
struct Buffer {
  std::byte* data;
  BufferPool* pool;
  std::uint32_t references;
};

/// Shares ownership of a buffer. Empty when it owns none.
class BufferRef {
 public:
  BufferRef() = default;
  explicit BufferRef(Buffer* buffer) : buffer_(buffer) { retain(); }
  BufferRef(const BufferRef& other) : buffer_(other.buffer_) { retain(); }
  BufferRef(BufferRef&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  BufferRef& operator=(BufferRef other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~BufferRef() { release(); }

  explicit operator bool() const { return buffer_ != nullptr; }
  std::byte* data() const { return buffer_->data; }

 private:
  void retain() {
    if (buffer_ != nullptr) ++buffer_->references;
  }
  void release();
  Buffer* buffer_ = nullptr;
};

/// A fixed number of equal buffers, each aligned to 64 bytes. Not thread-safe.
class BufferPool {
 public:
  BufferPool(std::size_t buffers, std::size_t buffer_bytes);
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();  // every BufferRef must be gone

  /// A free buffer, or an empty reference when all are in use.
  BufferRef acquire();
  std::size_t free_count() const { return free_.size(); }
  std::size_t capacity() const { return buffers_.size(); }
  std::size_t buffer_bytes() const { return buffer_bytes_; }

 private:
  friend class BufferRef;
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::size_t buffer_bytes_;
  std::unique_ptr<std::byte[], Free> memory_;
  std::vector<Buffer> buffers_;
  std::vector<Buffer*> free_;
};

/// One packet: a view into a buffer, and the reference that keeps the buffer alive. A packet with
/// no owner is only valid during the call that it is passed to.
struct Packet {
  std::span<const std::byte> bytes;
  BufferRef owner;
};

inline void BufferRef::release() {
  if (buffer_ != nullptr && --buffer_->references == 0) buffer_->pool->free_.push_back(buffer_);
  buffer_ = nullptr;
}

}  // namespace cais
