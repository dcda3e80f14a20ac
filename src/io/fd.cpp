#include "io/fd.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace cais::io {

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

Error system_error(const std::string& what) {
  const int error = errno;
  char text[128];
  return Error{ErrorCode::system, what + ": " + ::strerror_r(error, text, sizeof(text))};
}

}  // namespace cais::io
