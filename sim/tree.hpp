// sim/tree.hpp — the tree of switches above the ranks of a group (P9): who is below whom. Node
// numbers are places: a group may leave some of them empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/rng.hpp"
#include "core/switching/switch.hpp"

namespace cais::sim {

class Tree {
 public:
  struct Node {
    std::uint8_t level = 1;
    std::uint64_t members = 0;          // the ranks below; 0: the group does not use it
    std::optional<std::size_t> parent;  // none: the root
  };
  /// How many switches a tree has that is so high, and begins with so many.
  static std::size_t nodes_of(std::uint64_t levels, std::uint64_t leaves);

  /// One switch above all ranks.
  explicit Tree(std::uint16_t ranks);
  /// leaf_of_rank[r]: the switch in [0, leaves) that rank r is below. The switches at level 2 of a
  /// tree of three have two leaves each.
  Tree(std::uint64_t levels, std::uint64_t leaves, const std::vector<std::size_t>& leaf_of_rank);
  /// Ranks below leaves by chance.
  static Tree random(Rng& rng, std::uint64_t levels, std::uint64_t leaves, std::uint16_t ranks);

  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(std::size_t which) const { return nodes_[which]; }
  bool uses(std::size_t which) const { return nodes_[which].members != 0; }
  std::size_t root() const { return nodes_.size() - 1; }
  std::size_t leaf_of(Rank rank) const { return leaf_of_rank_[rank.value]; }
  /// The switches right below, in the order of their least ranks; none below a leaf.
  std::vector<std::size_t> switches_below(std::size_t which) const;
  /// The ranks below the child of `which` that `rank` is below.
  std::uint64_t below_child(std::size_t which, Rank rank) const;
  switching::TreePlace place(std::size_t which) const;

 private:
  std::vector<Node> nodes_;
  std::vector<std::size_t> leaf_of_rank_;
};

/// The least rank of a set: what a switch is called by its parent.
Rank least(std::uint64_t ranks);

}  // namespace cais::sim
