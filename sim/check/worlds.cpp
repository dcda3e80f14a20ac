// The small worlds: every kind of op, 2 and 3 ranks, windows of 1 and 2, 3 or 4 fragments (so that
// slots are taken anew), two ops behind each other, a window that sees gaps (P11), a mismatch
// (P12), a second epoch (P15, P17), trees of two levels (P9), and both.
#include "sim/check/model.hpp"

namespace cais::sim {
namespace {

constexpr OpKind kinds[] = {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter,
                            OpKind::broadcast,  OpKind::reduce,     OpKind::barrier,
                            OpKind::all_to_all, OpKind::gather,     OpKind::scatter};

std::string name_of(const std::string& what, std::uint16_t ranks, std::uint32_t window) {
  return what + "-" + std::to_string(ranks) + "-w" + std::to_string(window);
}

/// `fragments` in all, as far as the op's units allow.
std::vector<SmallOp> ops_of(OpKind kind, std::uint16_t ranks, std::uint32_t fragments) {
  if (kind == OpKind::barrier) return std::vector<SmallOp>(fragments, SmallOp{kind, 1});
  const std::uint32_t units = wire::units_of(kind, ranks);
  return {{kind, std::max(units, fragments / units * units)}};
}

std::vector<SmallWorld> make_worlds() {
  std::vector<SmallWorld> worlds;
  for (const OpKind kind : kinds) {
    for (const std::uint16_t ranks : {std::uint16_t{2}, std::uint16_t{3}}) {
      for (const std::uint32_t window : {1u, 2u}) {
        const std::string name = name_of(std::string(cais::to_string(kind)), ranks, window);
        worlds.push_back({name, ranks, window, ops_of(kind, ranks, 2 + window)});
      }
    }
  }
  for (const std::uint16_t ranks : {std::uint16_t{2}, std::uint16_t{3}}) {
    for (const std::uint32_t window : {1u, 2u}) {
      worlds.push_back({name_of("sequence", ranks, window),
                        ranks,
                        window,
                        {{OpKind::all_reduce, 1},
                         {OpKind::all_gather, 1},
                         {OpKind::broadcast, 1},
                         {OpKind::barrier, 1}}});
      worlds.push_back({name_of("mismatch", ranks, window),
                        ranks,
                        window,
                        {{OpKind::all_reduce, 2}, {OpKind::broadcast, 2}},
                        true});
    }
  }
  // P9: two switches with two ranks each, below a third.
  const std::vector<std::size_t> two_and_two{0, 0, 1, 1};
  for (const OpKind kind : kinds) {
    const std::string name = "tree-" + name_of(std::string(cais::to_string(kind)), 4, 1);
    worlds.push_back({name, 4, 1, ops_of(kind, 4, 3), false, false, two_and_two});
  }
  worlds.push_back({"tree-" + name_of("all_reduce", 4, 2),
                    4,
                    2,
                    {{OpKind::all_reduce, 3}},
                    false,
                    false,
                    two_and_two});
  worlds.push_back({"tree-" + name_of("sequence", 4, 1),
                    4,
                    1,
                    {{OpKind::all_reduce, 1}, {OpKind::all_gather, 1}, {OpKind::broadcast, 1}},
                    false,
                    false,
                    two_and_two});
  worlds.push_back({"tree-" + name_of("mismatch", 4, 1),
                    4,
                    1,
                    {{OpKind::all_reduce, 1}, {OpKind::broadcast, 1}},
                    true,
                    false,
                    two_and_two});
  worlds.push_back({name_of("gap", 2, 4), 2, 4, {{OpKind::all_reduce, 6}}});
  worlds.push_back({name_of("gap", 2, 8), 2, 8, {{OpKind::all_gather, 10}}});
  // A window that is lost must not come back a few fragments at each timeout.
  worlds.push_back({name_of("burst", 2, 16), 2, 16, {{OpKind::all_reduce, 16}}});
  for (const OpKind kind : kinds) {
    for (const std::uint32_t window : {1u, 2u}) {
      SmallWorld world{name_of("epochs-" + std::string(cais::to_string(kind)), 2, window), 2,
                       window, ops_of(kind, 2, 1 + window)};
      world.epochs = true;
      worlds.push_back(world);
    }
  }
  // Ops that are done by the time they are asked for.
  SmallWorld ops{name_of("epochs-sequence", 2, 2), 2, 2, {}};
  ops.ops = {{OpKind::all_reduce, 1}, {OpKind::reduce, 1}, {OpKind::all_gather, 1}};
  ops.epochs = true;
  worlds.push_back(ops);
  SmallWorld three{name_of("epochs-all_reduce", 3, 1), 3, 1, {{OpKind::all_reduce, 2}}};
  three.epochs = true;
  worlds.push_back(three);
  // P9 and P17: a rank below each of two switches, and two.
  for (const OpKind kind : kinds) {
    SmallWorld tree{name_of("epochs-tree-" + std::string(cais::to_string(kind)), 2, 1), 2, 1,
                    ops_of(kind, 2, 2)};
    tree.epochs = true;
    tree.leaf_of_rank = {0, 1};
    worlds.push_back(tree);
  }
  SmallWorld four{name_of("epochs-tree-all_reduce", 4, 1), 4, 1, {{OpKind::all_reduce, 2}}};
  four.epochs = true;
  four.leaf_of_rank = two_and_two;
  worlds.push_back(four);
  return worlds;
}

}  // namespace

const std::vector<SmallWorld>& small_worlds() {
  static const std::vector<SmallWorld> worlds = make_worlds();
  return worlds;
}

}  // namespace cais::sim
