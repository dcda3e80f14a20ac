// io/fd.hpp — a file descriptor that closes itself, and errno as an Error.
#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"

namespace cais::io {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// ErrorCode::system with errno's words: "cannot bind 10.0.0.1:5000: Address already in use".
Error system_error(const std::string& what);

}  // namespace cais::io
