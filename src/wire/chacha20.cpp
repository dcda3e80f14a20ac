#include "wire/chacha20.hpp"

#include <bit>

#include "wire/bytes.hpp"

namespace cais::wire {
namespace {

using Words = std::array<std::uint32_t, 16>;

void quarter_round(Words& x, std::size_t a, std::size_t b, std::size_t c, std::size_t d) {
  x[a] += x[b];
  x[d] = std::rotl(x[d] ^ x[a], 16);
  x[c] += x[d];
  x[b] = std::rotl(x[b] ^ x[c], 12);
  x[a] += x[b];
  x[d] = std::rotl(x[d] ^ x[a], 8);
  x[c] += x[d];
  x[b] = std::rotl(x[b] ^ x[c], 7);
}

void double_round(Words& x) {
  for (std::size_t i = 0; i < 4; ++i) quarter_round(x, i, 4 + i, 8 + i, 12 + i);
  for (std::size_t i = 0; i < 4; ++i) {
    quarter_round(x, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
  }
}

}  // namespace

std::array<std::byte, chacha20_block_bytes> chacha20_block(
    std::span<const std::byte, 32> key, const std::array<std::uint32_t, 3>& nonce,
    std::uint32_t counter) {
  Words start{0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};  // "expand 32-byte k"
  for (std::size_t i = 0; i < 8; ++i) start[4 + i] = load_little<std::uint32_t>(&key[4 * i]);
  start[12] = counter;
  for (std::size_t i = 0; i < 3; ++i) start[13 + i] = nonce[i];
  Words x = start;
  for (int i = 0; i < 10; ++i) double_round(x);
  std::array<std::byte, chacha20_block_bytes> block;
  for (std::size_t i = 0; i < x.size(); ++i) store_little(&block[4 * i], x[i] + start[i]);
  return block;
}

}  // namespace cais::wire
