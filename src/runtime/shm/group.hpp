// runtime/shm/group.hpp — how the ranks of one machine come together. Rank 0 listens on an abstract
// Unix socket whose name it leaves in the rendezvous; each rank sends it a pidfd of itself and its
// arena; rank 0 makes the group's segment and gives everything to all. The sockets are closed again
// then: from there on the ranks meet in the segment alone, and watch each other through the pidfds.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "io/shm/process_watch.hpp"
#include "io/shm/segment.hpp"
#include "runtime/communicator.hpp"
#include "runtime/rendezvous.hpp"
#include "runtime/settings.hpp"
#include "runtime/shm/group_memory.hpp"

namespace cais::runtime::shm {

/// What a rank knows of another (and of itself).
struct Peer {
  std::uint16_t outer_rank = 0;  // GroupConfig::outer_rank: for people
  std::int32_t pid = 0;          // in its own namespace: for people
  std::string host;
  std::shared_ptr<const io::Segment> arena;  // null: it has none, or none that we can map
};

struct Group {
  std::uint16_t rank;
  GroupMemory memory;
  std::vector<Peer> peers;
  io::ProcessWatch watch;
  std::uint32_t cores;  // that the ranks may run on, all together; the same at all ranks

  std::uint16_t ranks() const { return memory.shape().ranks; }
};

/// Collective. The keys that it sets begin with "cais/shm/" + config.name. timed_out names the
/// ranks that did not come; malformed, unavailable, system.
Result<Group> connect_group(const Settings& settings, const GroupConfig& config,
                            Rendezvous& rendezvous);

}  // namespace cais::runtime::shm
