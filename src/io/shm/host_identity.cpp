#include "io/shm/host_identity.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <fstream>

#include "io/fd.hpp"

namespace cais::io {

Result<HostIdentity> host_identity() {
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  if (boot_id.empty()) return system_error("cannot read /proc/sys/kernel/random/boot_id");
  struct stat status {};
  if (::stat("/proc/self/ns/net", &status) != 0) return system_error("cannot read /proc/self/ns");
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return system_error("gethostname");
  return HostIdentity{boot_id + "/" + std::to_string(status.st_ino), name.data()};
}

}  // namespace cais::io
