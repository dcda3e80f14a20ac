#include "base/buffer.hpp"

#include <new>

#include "base/check.hpp"
#include "base/round_up.hpp"

namespace cais {
namespace {
constexpr std::size_t alignment_bytes = 64;
constexpr std::align_val_t buffer_alignment{alignment_bytes};
}  // namespace

BufferPool::BufferPool(std::size_t buffers, std::size_t buffer_bytes)
    : buffer_bytes_(round_up(buffer_bytes, alignment_bytes)),
      memory_(
          static_cast<std::byte*>(::operator new[]((buffers * buffer_bytes_), buffer_alignment))) {
  buffers_.reserve(buffers);
  free_.reserve(buffers);
  for (std::size_t i = 0; i < buffers; ++i) {
    buffers_.push_back(Buffer{memory_.get() + i * buffer_bytes_, this, 0});
  }
  for (Buffer& buffer : buffers_) free_.push_back(&buffer);
}

BufferPool::~BufferPool() { CAIS_CHECK(free_.size() == buffers_.size()); }

BufferRef BufferPool::acquire() {
  if (free_.empty()) return {};
  Buffer* buffer = free_.back();
  free_.pop_back();
  return BufferRef(buffer);
}

void BufferPool::Free::operator()(std::byte* memory) const {
  ::operator delete[](memory, buffer_alignment);
}

}  // namespace cais
