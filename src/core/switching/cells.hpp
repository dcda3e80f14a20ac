// core/switching/cells.hpp — storage for the packets that a lane keeps: equal cells, each with room
// for a header and, right behind it, a payload aligned to a cache line, so that a kept packet goes
// out in one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cais::switching {

/// Memory grows in slabs up to the bound and is then kept: a session costs what it has needed at
/// most, not what it might need. Cells are named by index, so that a copy of the pool stands alone.
class CellPool {
 public:
  using Index = std::uint32_t;
  static constexpr Index none = ~Index{0};

  CellPool(std::size_t payload_bytes_max, std::size_t cells_max);

  /// A free cell, the one given back last first; `none` at the bound.
  Index acquire();
  void release(Index cell) { free_.push_back(cell); }

  /// Where the cell's header begins.
  std::byte* at(Index cell);

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  void grow();

  std::size_t lines_per_cell_;
  std::size_t cells_max_;
  std::vector<std::vector<Line>> slabs_;
  std::vector<Index> free_;
};

}  // namespace cais::switching
