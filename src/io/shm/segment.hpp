// io/shm/segment.hpp — memory that processes of one machine share: a sealed memfd and its mapping.
// It has no name in any file system: the kernel frees it with the last process that holds it.
#pragma once

#include <cstddef>
#include <utility>

#include "base/result.hpp"
#include "io/fd.hpp"

namespace cais::io {

class Segment {
 public:
  Segment() = default;
  /// A new segment of zeros that can neither grow nor shrink. system: the kernel refuses.
  static Result<Segment> create(std::size_t bytes);
  /// Maps the segment behind `fd`, all of it. malformed: it is empty.
  static Result<Segment> map(Fd fd);
  Segment(Segment&& other) noexcept
      : fd_(std::move(other.fd_)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Segment& operator=(Segment&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Segment();

  int fd() const { return fd_.get(); }
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Fd fd_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace cais::io
