// io/shm/mapped_arena.hpp — a peer's arena as this process sees it: mapped once, however many
// groups the peer shares with us.
#pragma once

#include <cstddef>
#include <memory>

#include "base/result.hpp"
#include "io/shm/segment.hpp"

namespace cais::io {

/// The arena behind `fd`; the mapping that this process already has of it, if it has one. A
/// process-wide table, for address space is what a process has one of.
Result<std::shared_ptr<const Segment>> map_arena(Fd fd);

}  // namespace cais::io
