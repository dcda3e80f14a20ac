// fuzz/mismatch.cpp — what ranks are told that called different collectives (P12): two descriptors,
// as valid as a stranger can make them, explained in words.
#include <cstring>

#include "fuzz/input.hpp"
#include "wire/descriptor.hpp"

using namespace cais;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t ranks_bytes = 2;
  if (size != 2 * wire::descriptor_bytes + ranks_bytes) return 0;
  const auto bytes = fuzz::as_bytes(data, size).subspan(ranks_bytes);
  const auto ours = wire::parse_descriptor(bytes.first(wire::descriptor_bytes));
  const auto theirs = wire::parse_descriptor(bytes.subspan(wire::descriptor_bytes));
  if (!ours || !theirs) return 0;
  const Rank us(data[0] % ranks_max), them(data[1] % ranks_max);
  const std::string words = wire::explain_mismatch(*ours, us, *theirs, them);
  CAIS_CHECK(words.find("rank " + std::to_string(us.value)) != words.npos);
  CAIS_CHECK(words.find("rank " + std::to_string(them.value)) != words.npos);
  return 0;
}
