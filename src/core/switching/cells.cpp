#include "core/switching/cells.hpp"

#include <algorithm>

#include "wire/header.hpp"

namespace cais::switching {
namespace {

constexpr std::size_t line_bytes = 64;
constexpr std::size_t cells_per_slab = 64;
/// The header ends where the second line begins.
constexpr std::size_t header_at = line_bytes - wire::header_bytes;
static_assert(wire::header_bytes <= line_bytes);

}  // namespace

CellPool::CellPool(std::size_t payload_bytes_max, std::size_t cells_max)
    : lines_per_cell_(1 + (payload_bytes_max + line_bytes - 1) / line_bytes),
      cells_max_(cells_max) {}

CellPool::Index CellPool::acquire() {
  if (free_.empty()) grow();
  if (free_.empty()) return none;
  const Index cell = free_.back();
  free_.pop_back();
  return cell;
}

std::byte* CellPool::at(Index cell) {
  std::vector<Line>& slab = slabs_[cell / cells_per_slab];
  return slab[cell % cells_per_slab * lines_per_cell_].bytes + header_at;
}

void CellPool::grow() {
  const std::size_t made = slabs_.size() * cells_per_slab;
  const std::size_t more = std::min(cells_per_slab, cells_max_ - std::min(made, cells_max_));
  if (more == 0) return;
  slabs_.emplace_back(more * lines_per_cell_);
  for (std::size_t i = more; i > 0; --i) free_.push_back(static_cast<Index>(made + i - 1));
}

}  // namespace cais::switching
