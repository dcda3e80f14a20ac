// tests/scenarios/switch_words.hpp — the words that say what is in a packet for the switch.
#pragma once

#include <string>
#include <vector>

#include "core/switching/switch.hpp"
#include "tests/scenarios/script.hpp"

namespace cais::scenarios {

/// "0-2": ranks 0 to 2; "4": rank 4.
switching::RankSet read_ranks(const std::string& word);

/// Which op the packet is of, and which of its fragments.
void put_place(const Op& op, std::uint32_t fragment, wire::Header& header);

/// One of "in session|epoch|lane|chunk|kind N", "final", "through port P", "with a wrong tag".
void disturb(Words& words, wire::Header& header, std::int64_t& port, std::uint64_t& whose);

/// One of "finished", "x N", "for R…", "in level N", "through port P", "of rank R", "to rank R".
void detail_from_parent(Words& words, wire::Header& header, std::vector<std::byte>& payload,
                        std::int64_t& port);

}  // namespace cais::scenarios
