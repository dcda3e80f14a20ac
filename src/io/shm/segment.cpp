#include "io/shm/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace cais::io {
namespace {

// A segment that shrinks under a mapping would end its reader with SIGBUS.
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

Result<Segment> Segment::create(std::size_t bytes) {
  Fd fd(::memfd_create("cais_group", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return system_error("cannot create shared memory (memfd_create)");
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return system_error("cannot size shared memory to " + std::to_string(bytes) + " bytes");
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) return system_error("cannot seal shared memory");
  return map(std::move(fd));
}

Result<Segment> Segment::map(Fd fd) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return system_error("cannot size shared memory (fstat)");
  if (status.st_size <= 0) {
    return Error{ErrorCode::malformed, "what a peer sent as shared memory is empty"};
  }
  Segment segment;
  segment.bytes_ = static_cast<std::size_t>(status.st_size);
  void* data = ::mmap(nullptr, segment.bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                      fd.get(), 0);
  if (data == MAP_FAILED) {
    return system_error("cannot map " + std::to_string(segment.bytes_) + " bytes of shared memory");
  }
  segment.data_ = static_cast<std::byte*>(data);
  segment.fd_ = std::move(fd);
  return segment;
}

Segment::~Segment() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace cais::io
