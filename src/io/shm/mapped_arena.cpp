#include "io/shm/mapped_arena.hpp"

#include <sys/stat.h>

#include <map>
#include <mutex>
#include <utility>

namespace cais::io {
namespace {

struct Table {
  std::mutex mutex;
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<const Segment>> arenas;
};

Table& table() {
  static Table* const table = new Table;  // never destroyed: groups may outlive static objects
  return *table;
}

}  // namespace

Result<std::shared_ptr<const Segment>> map_arena(Fd fd) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return system_error("cannot look at a peer's arena (fstat)");
  Table& known = table();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.arenas, [](const auto& entry) { return entry.second.expired(); });
  auto& entry = known.arenas[{status.st_dev, status.st_ino}];
  if (auto arena = entry.lock()) return arena;
  auto segment = Segment::map(std::move(fd));
  if (!segment) return segment.error();
  auto arena = std::make_shared<const Segment>(std::move(*segment));
  entry = arena;
  return arena;
}

}  // namespace cais::io
