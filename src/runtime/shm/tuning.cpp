#include "runtime/shm/tuning.hpp"

#include <algorithm>
#include <limits>

namespace cais::runtime::shm {

Tuning tuning_for(std::uint16_t ranks, std::uint32_t cores) {
  Tuning tuning{};
  tuning.inline_bytes = ranks <= 2 ? inline_bytes_max : 4 * 1024;
  // Two ranks exchange: to reduce once and share the result would move as many bytes.
  tuning.exchange_bytes = ranks <= 2 ? std::numeric_limits<std::size_t>::max() : 0;
  tuning.split_bytes = ranks <= 2 ? std::numeric_limits<std::size_t>::max() : std::size_t{1} << 20;
  // Two ranks with a core each work from their own cache; others pay for a turn on a core per
  // round.
  tuning.round_bytes = ranks <= 2 ? 128 * 1024 : 512 * 1024;
  tuning.stream_bytes = std::size_t{24} << 20;
  tuning.piece_bytes_min = 4 * 1024;
  tuning.piece_bytes_max = 64 * 1024;
  // As many as can work at the same time: a rank with no core claims nothing.
  tuning.ranges = std::clamp<std::uint32_t>(std::min<std::uint32_t>(ranks, cores), 1,
                                            static_cast<std::uint32_t>(claims_max));
  return tuning;
}

}  // namespace cais::runtime::shm
