// sim/world_detail.hpp — what the parts of World share.
#pragma once

#include <sstream>

#include "sim/world.hpp"

namespace cais::sim {

inline constexpr std::size_t inbox_max = 256;  // packets; a socket's receive buffer
inline constexpr std::uint64_t management_us_max = 300;

/// The lanes that a plane serves, its number being that of a tree.
inline std::uint64_t lanes_at(std::size_t plane, const std::vector<control::TreeNumber>& servers) {
  std::uint64_t lanes = 0;
  for (std::size_t lane = 0; lane < servers.size(); ++lane) {
    if (servers[lane].value == plane) lanes |= std::uint64_t{1} << lane;
  }
  return lanes;
}

/// Headers and descriptors become words only when somebody looks.
template <typename Part>
const Part& in_words(const Part& part) {
  return part;
}
inline std::string in_words(const wire::Header& header) { return wire::to_string(header); }
inline std::string in_words(const wire::CommDescriptor& what) { return wire::to_string(what); }

template <typename... Parts>
void World::tell(const Parts&... parts) {
  if (!trace_) return;
  std::ostringstream line;
  line.setf(std::ios::fixed);
  line.precision(3);
  line << std::chrono::duration<double, std::milli>(timeline_.now().time_since_epoch()).count()
       << " ms  ";
  (line << ... << in_words(parts));
  trace_(line.str());
}

template <typename Node>
bool World::wait_in_inbox(Node& node, const Delivery& packet) {
  if (!node.paused(timeline_.now())) return false;
  if (node.inbox.size() < inbox_max) {
    node.inbox.push_back(packet);
  } else {
    ++network_.faults()[static_cast<std::size_t>(Fault::overflow)];
  }
  return true;
}

}  // namespace cais::sim
