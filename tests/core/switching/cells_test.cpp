#include "core/switching/cells.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "wire/header.hpp"

namespace cais::switching {
namespace {

TEST(CellPool, HandsOutAsManyAsItsBoundAndNoMore) {
  CellPool pool(100, 150);
  std::set<CellPool::Index> cells;
  for (int i = 0; i < 150; ++i) cells.insert(pool.acquire());
  EXPECT_EQ(cells.size(), 150u);
  EXPECT_FALSE(cells.contains(CellPool::none));
  EXPECT_EQ(pool.acquire(), CellPool::none);
  pool.release(7);
  EXPECT_EQ(pool.acquire(), 7u);
  EXPECT_EQ(pool.acquire(), CellPool::none);
}

TEST(CellPool, PayloadsAreAlignedAndDoNotOverlap) {
  constexpr std::size_t payload = 130;
  CellPool pool(payload, 70);
  std::set<std::byte*> ends;
  for (int i = 0; i < 70; ++i) {
    std::byte* header = pool.at(pool.acquire());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(header + wire::header_bytes) % 64, 0u);
    const auto next = ends.lower_bound(header);
    EXPECT_TRUE(next == ends.end() ||
                *next - header >= std::ptrdiff_t(wire::header_bytes + payload));
    ends.insert(header);
  }
}

TEST(CellPool, ACopyStandsAlone) {
  CellPool pool(16, 4);
  const CellPool::Index cell = pool.acquire();
  *pool.at(cell) = std::byte{1};
  CellPool copy = pool;
  *copy.at(cell) = std::byte{2};
  EXPECT_EQ(*pool.at(cell), std::byte{1});
}

}  // namespace
}  // namespace cais::switching
