// fuzz/canary.cpp — a target that must fail: it reads past an array, behind four conditions on what
// a parser made of the bytes. When that is not found, the fuzzers find nothing: tools/fuzz.py
// fails.
#include <array>

#include "fuzz/input.hpp"
#include "wire/header.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cais::wire::Header header;
  if (parse(cais::fuzz::as_bytes(data, size), header) != cais::wire::ParseError::none) return 0;
  if (header.kind != cais::wire::Kind::waiting || header.level != 9) return 0;
  if (header.chunk != 0xc0a1c0a1 || header.rank.value == 0) return 0;
  std::array<volatile char, 4> bytes{};
  const std::size_t past_the_end = bytes.size() - 1 + header.rank.value % 2;
  (void)*(bytes.data() + past_the_end);
  return 0;
}
