// fuzz/header.cpp — any packet (P13): what parses is written back to the same bytes, and its tag is
// right just when it was made with the session's seed.
#include "wire/header.hpp"

#include <algorithm>
#include <vector>

#include "fuzz/input.hpp"

using namespace cais;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint64_t seed = 0x5eed;
  const auto packet = fuzz::as_bytes(data, size);
  wire::Header header;
  (void)wire::tag_is_right(packet, seed);
  if (wire::parse(packet, header) != wire::ParseError::none) return 0;
  CAIS_CHECK(header.session != SessionId(0));
  CAIS_CHECK(!wire::to_string(header).empty());

  std::vector<std::byte> again(packet.begin(), packet.end());
  wire::serialize(header, packet.subspan(wire::header_bytes), seed,
                  std::span(again).first<wire::header_bytes>());
  constexpr std::size_t before_tag = wire::header_bytes - sizeof(header.tag);
  CAIS_CHECK(std::equal(packet.begin(), packet.begin() + before_tag, again.begin()));
  CAIS_CHECK(wire::tag_is_right(again, seed));
  CAIS_CHECK(!wire::tag_is_right(again, seed + 1));

  wire::Header named = header;
  wire::name_ranks(named, wire::named_ranks(header));
  CAIS_CHECK(named.chunk == header.chunk && named.offset == header.offset);
  return 0;
}
