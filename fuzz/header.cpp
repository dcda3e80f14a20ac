// fuzz/header.cpp — any packet (P13): what parses is written back to the same bytes, and its tag is
// right just when it was made with the sender's key.
#include "wire/header.hpp"

#include <algorithm>
#include <vector>

#include "fuzz/input.hpp"

using namespace cais;

namespace {

wire::Keys keys_of(const wire::Secret& secret) {
  return wire::Keys::of_session(wire::Tags::keyed, secret, ranks_max, Epoch(1));
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const wire::Keys keys = keys_of(wire::Secret{});
  static const wire::Keys others = keys_of(wire::Secret{{std::byte{1}}});
  const auto packet = fuzz::as_bytes(data, size);
  wire::Header header;
  (void)wire::tag_is_right(packet, keys);
  if (wire::parse(packet, header) != wire::ParseError::none) return 0;
  CAIS_CHECK(header.session != SessionId(0));
  CAIS_CHECK(!wire::to_string(header).empty());

  const bool unknown = wire::sent_by_rank(header.kind) && header.rank.value >= ranks_max;
  if (unknown) return 0;  // there is no key to make its tag with
  std::vector<std::byte> again(packet.begin(), packet.end());
  wire::serialize(header, packet.subspan(wire::header_bytes), keys,
                  std::span(again).first<wire::header_bytes>());
  constexpr std::size_t before_tag = wire::header_bytes - sizeof(header.tag);
  CAIS_CHECK(std::equal(packet.begin(), packet.begin() + before_tag, again.begin()));
  CAIS_CHECK(wire::tag_is_right(again, keys));
  CAIS_CHECK(!wire::tag_is_right(again, others));

  wire::Header named = header;
  wire::name_ranks(named, wire::named_ranks(header));
  CAIS_CHECK(named.chunk == header.chunk && named.offset == header.offset);
  return 0;
}
