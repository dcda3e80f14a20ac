#include "runtime/shm/tuning.hpp"

#include <algorithm>
#include <limits>

namespace cais::runtime::shm {

Tuning tuning_for(std::uint16_t ranks, std::uint32_t cores) {
  const bool crowded = ranks > cores;
  Tuning tuning{};
  tuning.inline_bytes = crowded ? 2 * 1024 : inline_bytes_max;
  // To split costs the least work, and one more turn on a core: too much where ranks share cores.
  tuning.split_bytes = crowded ? std::numeric_limits<std::size_t>::max() : tuning.inline_bytes;
  // One round is one turn on a core, as long as what is staged stays in the cache.
  tuning.single_round_bytes = 512 * 1024;
  tuning.round_bytes = crowded ? 256 * 1024 : 512 * 1024;
  tuning.stream_bytes = std::size_t{24} << 20;
  tuning.piece_bytes_min = 4 * 1024;
  tuning.piece_bytes_max = 64 * 1024;
  // As many as can work at the same time: a rank with no core claims nothing.
  tuning.ranges = std::clamp<std::uint32_t>(std::min<std::uint32_t>(ranks, cores), 1,
                                            static_cast<std::uint32_t>(claims_max));
  return tuning;
}

}  // namespace cais::runtime::shm
