#include "sim/tree.hpp"

#include <algorithm>
#include <bit>

namespace cais::sim {

Rank least(std::uint64_t ranks) {
  return Rank(static_cast<std::uint16_t>(std::countr_zero(ranks)));
}

std::size_t Tree::nodes_of(std::uint64_t levels, std::uint64_t leaves) {
  return levels == 1 ? 1 : levels == 2 ? leaves + 1 : leaves + (leaves + 1) / 2 + 1;
}

Tree::Tree(std::uint16_t ranks) : Tree(1, 1, std::vector<std::size_t>(ranks, 0)) {}

Tree::Tree(std::uint64_t levels, std::uint64_t leaves, const std::vector<std::size_t>& leaf_of_rank)
    : nodes_(nodes_of(levels, leaves)), leaf_of_rank_(leaf_of_rank) {
  for (std::size_t i = 0; i + 1 < nodes_.size(); ++i) {
    const bool leaf = i < leaves;
    nodes_[i].level = leaf ? 1 : 2;
    nodes_[i].parent = leaf && levels == 3 ? leaves + i / 2 : root();
  }
  nodes_[root()].level = static_cast<std::uint8_t>(levels);
  for (std::size_t r = 0; r < leaf_of_rank.size(); ++r) {
    std::optional<std::size_t> at = leaf_of_rank[r];
    for (; at; at = nodes_[*at].parent) nodes_[*at].members |= std::uint64_t{1} << r;
  }
}

Tree Tree::random(Rng& rng, std::uint64_t levels, std::uint64_t leaves, std::uint16_t ranks) {
  if (levels == 1) return Tree(ranks);
  std::vector<std::size_t> leaf_of_rank;
  for (std::uint16_t r = 0; r < ranks; ++r) leaf_of_rank.push_back(rng.below(leaves));
  return Tree(levels, leaves, leaf_of_rank);
}

std::vector<std::size_t> Tree::switches_below(std::size_t which) const {
  std::vector<std::size_t> below;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].parent == which && uses(i)) below.push_back(i);
  }
  std::sort(below.begin(), below.end(), [&](std::size_t a, std::size_t b) {
    return least(nodes_[a].members).value < least(nodes_[b].members).value;
  });
  return below;
}

std::uint64_t Tree::below_child(std::size_t which, Rank rank) const {
  const std::uint64_t self = std::uint64_t{1} << rank.value;
  for (const std::size_t child : switches_below(which)) {
    if ((nodes_[child].members & self) != 0) return nodes_[child].members;
  }
  return self;
}

switching::TreePlace Tree::place(std::size_t which) const {
  switching::TreePlace place{
      .level = nodes_[which].level, .has_parent = nodes_[which].parent.has_value(), .children = {}};
  for (const std::size_t child : switches_below(which)) {
    place.children.push_back(nodes_[child].members);
  }
  for (std::uint64_t left = nodes_[which].members; place.level == 1 && left != 0;
       left &= left - 1) {
    place.children.push_back(left & ~(left - 1));
  }
  return place;
}

}  // namespace cais::sim
