// fuzz/payloads.cpp — the payloads of want and mismatch packets: what parses is written back to the
// same bytes, but for the four that a mismatch has to spare.
#include <algorithm>

#include "fuzz/input.hpp"
#include "wire/header.hpp"

using namespace cais;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto payload = fuzz::as_bytes(data, size);
  wire::Want want;
  if (wire::parse(payload, want)) {
    CAIS_CHECK(std::ranges::equal(wire::serialize(want), payload));
  }
  wire::Mismatch mismatch;
  if (wire::parse(payload, mismatch)) {
    CAIS_CHECK(mismatch.first.value < ranks_max && mismatch.second.value < ranks_max);
    const auto again = wire::serialize(mismatch);
    CAIS_CHECK(std::equal(again.begin(), again.begin() + 4, payload.begin()));
    CAIS_CHECK(std::equal(again.begin() + 8, again.end(), payload.begin() + 8));
  }
  return 0;
}
