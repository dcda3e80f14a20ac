#include "tests/scenarios/switch_words.hpp"

namespace cais::scenarios {

switching::RankSet read_ranks(const std::string& word) {
  const std::size_t dash = word.find('-');
  const unsigned long first = std::stoul(word.substr(0, dash));
  const unsigned long last = dash == std::string::npos ? first : std::stoul(word.substr(dash + 1));
  switching::RankSet ranks = 0;
  for (unsigned long r = first; r <= last; ++r) ranks |= switching::RankSet{1} << r;
  return ranks;
}

void put_place(const Op& op, std::uint32_t fragment, wire::Header& header) {
  header.descriptor = op.hash;
  header.chunk = op.plan.chunk_of(fragment);
  header.offset = static_cast<std::uint32_t>(op.plan.extent(fragment).offset / wire::offset_step);
}

void disturb(Words& words, wire::Header& header, std::int64_t& port, std::uint64_t& whose) {
  if (words.take("in")) {
    const std::string what = words.word();
    const std::int64_t value = words.number();
    if (what == "session") header.session = SessionId(static_cast<std::uint32_t>(value));
    if (what == "epoch") header.epoch = Epoch(static_cast<std::uint16_t>(value));
    if (what == "lane") header.lane = Lane(static_cast<std::uint8_t>(value));
    if (what == "chunk") header.chunk = static_cast<std::uint32_t>(value);
    if (what == "kind") header.kind = static_cast<wire::Kind>(value);
  } else if (words.take("final")) {
    header.flags |= wire::flag_final;
  } else if (words.take("through")) {
    words.need("port");
    port = words.number();
  } else {
    words.need("with");
    words.need("a");
    words.need("wrong");
    words.need("tag");
    ++whose;
  }
}

void detail_from_parent(Words& words, wire::Header& header, std::vector<std::byte>& payload,
                        std::int64_t& port) {
  if (words.take("finished")) {
    header.flags = wire::flag_finished;
  } else if (words.take("x")) {
    header.chunk = static_cast<std::uint32_t>(words.number());
  } else if (words.take("for")) {
    std::uint64_t named = 0;
    for (const std::int64_t r : words.numbers()) named |= 1ull << r;
    wire::name_ranks(header, named);
  } else if (words.take("in")) {
    words.need("level");
    header.level = static_cast<std::uint8_t>(words.number());
  } else if (words.take("through")) {
    words.need("port");
    port = words.number();
  } else {
    // Whose payload it is, or whose question it answers.
    const bool answers = words.take("to");
    if (!answers) words.need("of");
    words.need("rank");
    header.rank = Rank(static_cast<std::uint16_t>(words.number()));
    const auto stamp = wire::serialize(wire::Stamp{0});
    if (answers) payload.assign(stamp.begin(), stamp.end());
  }
}

}  // namespace cais::scenarios
