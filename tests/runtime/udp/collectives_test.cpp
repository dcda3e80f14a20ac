// Every kind of collective over real sockets equals its reference, bit for bit.
#include <gtest/gtest.h>

#include "tests/runtime/udp/checks.hpp"

namespace cais::runtime {
namespace {

TEST(UdpCollectives, TwoRanksReduce) {
  with_ranks({.ranks = 2}, [](TestRank& member) {
    for (const std::size_t count : {1, 4, 1000, 100'000}) check_all_reduce(member, count);
  });
}

class UdpGroups : public testing::TestWithParam<GroupOptions> {};

TEST_P(UdpGroups, ComputeAllKinds) {
  with_ranks(GetParam(), [](TestRank& member) {
    for (const std::size_t count : {1, 37, 1000, 60'000}) check_all_kinds(member, count);
  });
}

constexpr Faults two_percent{.loss = 0.02, .duplication = 0.02, .reordering = 0.02};
INSTANTIATE_TEST_SUITE_P(
    , UdpGroups,
    testing::Values(GroupOptions{.ranks = 1}, GroupOptions{.ranks = 2}, GroupOptions{.ranks = 3},
                    GroupOptions{.ranks = 4, .mtu = 9000}, GroupOptions{.ranks = 8},
                    GroupOptions{.ranks = 3, .mtu = 0}, GroupOptions{.ranks = 2, .gso = false},
                    GroupOptions{.ranks = 3, .tags = wire::Tags::checksum},
                    GroupOptions{.ranks = 2, .faults = two_percent, .seed = 11},
                    GroupOptions{.ranks = 4, .faults = two_percent, .seed = 12},
                    GroupOptions{.ranks = 8, .faults = two_percent, .seed = 13}),
    [](const auto& of) {
      const GroupOptions& options = of.param;
      return std::to_string(options.ranks) + "RanksMtu" + std::to_string(options.mtu) +
             (options.gso ? "" : "WithoutGso") +
             (options.tags == wire::Tags::keyed ? "" : "Checksums") +
             (options.faults.loss > 0 ? "Lossy" : "");
    });

}  // namespace
}  // namespace cais::runtime
