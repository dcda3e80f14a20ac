// The recipes: which steps make which collective.
#include "runtime/mixed/job.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "runtime/mixed/partial_sum.hpp"

namespace cais::runtime::mixed {
namespace {

// Sums and broadcasts are cut into pieces so that shared memory and network work at once.
constexpr std::size_t piece_bytes = std::size_t{1} << 20;

struct Piece {
  std::size_t begin;  // elements
  std::size_t count;
};

std::vector<Piece> pieces_of(std::size_t count, std::size_t element_bytes) {
  std::vector<Piece> pieces;
  const std::size_t step = piece_bytes / element_bytes;
  for (std::size_t begin = 0; begin < count; begin += step) {
    pieces.push_back({begin, std::min(step, count - begin)});
  }
  return pieces;
}

/// Calls `visit` with each rank, and the place of its unit among the hosts' blocks.
template <class Visit>
void for_each_unit(const Hosts& hosts, Visit visit) {
  for (std::size_t host = 0; host < hosts.count(); ++host) {
    const auto& ranks = hosts.members[host];
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      visit(std::size_t{ranks[i]}, host * hosts.members_max() + i);
    }
  }
}

class Recipe {
 public:
  Recipe(const Hosts& hosts, Seat seat, Operation& operation)
      : hosts_(hosts),
        seat_(seat),
        wanted_(operation.collective),
        element_bytes_(size_of(wanted_.dtype)),
        sum_{wanted_.reduce_op, wanted_.dtype, hosts.ranks()} {
    job_.operation = &operation;
  }

  Job make();

 private:
  bool leads() const { return seat_.index == 0; }
  std::byte* allocate(std::size_t bytes) {
    return job_.memory.emplace_back(new std::byte[std::max<std::size_t>(bytes, 1)]()).get();
  }
  std::size_t add(Where where, const Collective& collective, std::optional<std::size_t> after = {},
                  std::function<void()> prepare = {}) {
    job_.steps.push_back({where, collective, after, std::move(prepare), nullptr});
    return job_.steps.size() - 1;
  }
  Collective part(OpKind kind, DType dtype, const void* send, void* recv, std::size_t count) const;

  void all_reduce(std::byte* out);
  void reduce();
  void broadcast();
  void all_gather();
  void reduce_scatter();
  void all_to_all();
  void gather();
  void scatter();
  void barrier();

  /// From the hosts' blocks, each padded to as many units as the largest host has ranks, to units
  /// in rank order; and back.
  std::function<void()> blocks_to_ranks(const std::byte* blocks, std::byte* units,
                                        std::size_t unit) const;
  std::function<void()> ranks_to_blocks(const std::byte* units, std::byte* blocks,
                                        std::size_t unit) const;

  const Hosts& hosts_;
  const Seat seat_;
  const Collective& wanted_;
  const std::size_t element_bytes_;
  const PartialSum sum_;
  Job job_;
};

Job Recipe::make() {
  switch (wanted_.kind) {
    case OpKind::all_reduce:
      all_reduce(static_cast<std::byte*>(wanted_.recv));
      break;
    case OpKind::reduce:
      reduce();
      break;
    case OpKind::broadcast:
      broadcast();
      break;
    case OpKind::all_gather:
      all_gather();
      break;
    case OpKind::reduce_scatter:
      reduce_scatter();
      break;
    case OpKind::all_to_all:
      all_to_all();
      break;
    case OpKind::gather:
      gather();
      break;
    case OpKind::scatter:
      scatter();
      break;
    case OpKind::barrier:
      barrier();
      break;
  }
  return std::move(job_);
}

Collective Recipe::part(OpKind kind, DType dtype, const void* send, void* recv,
                        std::size_t count) const {
  Collective collective;
  collective.kind = kind;
  collective.dtype = dtype;
  collective.send = send;
  collective.recv = recv;
  collective.count = count;
  if (wire::reduces(kind)) collective.reduce_op = sum_.partial_op();
  return collective;
}

std::function<void()> Recipe::blocks_to_ranks(const std::byte* blocks, std::byte* units,
                                              std::size_t unit) const {
  return [=, &hosts = hosts_] {
    for_each_unit(hosts, [=](std::size_t rank, std::size_t place) {
      std::memcpy(units + rank * unit, blocks + place * unit, unit);
    });
  };
}

std::function<void()> Recipe::ranks_to_blocks(const std::byte* units, std::byte* blocks,
                                              std::size_t unit) const {
  return [=, &hosts = hosts_] {
    for_each_unit(hosts, [=](std::size_t rank, std::size_t place) {
      std::memcpy(blocks + place * unit, units + rank * unit, unit);
    });
  };
}

/// Per piece: the host's ranks into their leader, the leaders among themselves, back to the host.
/// All the first steps come before all the last ones, so that pieces overlap.
void Recipe::all_reduce(std::byte* out) {
  const DType partial = sum_.partial();
  const std::size_t partial_bytes = size_of(partial);
  const auto* in = static_cast<const std::byte*>(wanted_.send);
  std::byte* const sums = sum_.widens() ? allocate(wanted_.count * partial_bytes) : out;
  const std::vector<Piece> pieces = pieces_of(wanted_.count, partial_bytes);
  std::vector<std::optional<std::size_t>> summed(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto [begin, count] = pieces[i];
    const std::byte* from = in + begin * element_bytes_;
    std::byte* const to = sums + begin * partial_bytes;
    std::function<void()> prepare;
    if (sum_.widens()) {
      prepare = [sum = sum_, from, to, count = count] { sum.widen(from, to, count); };
      from = to;
    }
    const std::size_t reduced =
        add(Where::local, part(OpKind::reduce, partial, from, leads() ? to : nullptr, count), {},
            std::move(prepare));
    if (leads()) {
      summed[i] = add(Where::across, part(OpKind::all_reduce, partial, to, to, count), reduced);
    }
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto [begin, count] = pieces[i];
    std::byte* const result = out + begin * element_bytes_;
    std::function<void()> prepare;
    if (leads()) {
      const std::byte* const from = sums + begin * partial_bytes;
      prepare = [sum = sum_, from, result, count = count] { sum.finish(from, result, count); };
    }
    add(Where::local, part(OpKind::broadcast, wanted_.dtype, nullptr, result, count), summed[i],
        std::move(prepare));
  }
}

/// An all_reduce whose result is kept by the root alone.
void Recipe::reduce() {
  const Seat root = seat_of(hosts_, wanted_.root.value);
  const bool is_root = root.host == seat_.host && root.index == seat_.index;
  all_reduce(is_root ? static_cast<std::byte*>(wanted_.recv)
                     : allocate(wanted_.count * element_bytes_));
}

/// On the root's host from the root to all, then between the leaders, then on the other hosts.
void Recipe::broadcast() {
  const Seat root = seat_of(hosts_, wanted_.root.value);
  for (const auto& [begin, count] : pieces_of(wanted_.count, element_bytes_)) {
    std::byte* const data = static_cast<std::byte*>(wanted_.recv) + begin * element_bytes_;
    Collective local = part(OpKind::broadcast, wanted_.dtype, nullptr, data, count);
    Collective across = local;
    across.root = Rank(root.host);
    if (root.host == seat_.host) {
      local.root = Rank(root.index);
      const std::size_t spread = add(Where::local, local);
      if (leads()) add(Where::across, across, spread);
    } else {
      std::optional<std::size_t> received;
      if (leads()) received = add(Where::across, across);
      add(Where::local, local, received);
    }
  }
}

/// The host's units to its leader; the hosts' blocks, padded to one size, between the leaders; all
/// units, in rank order, back to the host.
void Recipe::all_gather() {
  const std::size_t unit = wanted_.count * element_bytes_;
  const std::size_t block = hosts_.members_max() * unit;
  auto* const out = static_cast<std::byte*>(wanted_.recv);
  std::byte* const own = leads() ? allocate(block) : nullptr;
  std::byte* const blocks = leads() ? allocate(block * hosts_.count()) : nullptr;
  const std::size_t gathered =
      add(Where::local, part(OpKind::gather, wanted_.dtype, wanted_.send, own, wanted_.count));
  std::optional<std::size_t> exchanged;
  std::function<void()> in_rank_order;
  if (leads()) {
    exchanged = add(
        Where::across,
        part(OpKind::all_gather, wanted_.dtype, own, blocks, wanted_.count * hosts_.members_max()),
        gathered);
    in_rank_order = blocks_to_ranks(blocks, out, unit);
  }
  add(Where::local,
      part(OpKind::broadcast, wanted_.dtype, nullptr, out, wanted_.count * hosts_.ranks()),
      exchanged, std::move(in_rank_order));
}

/// The host's sums of all units to its leader; the leaders trade them for the whole sums of their
/// own host's units (padded to one number of units a host); each rank gets its own.
void Recipe::reduce_scatter() {
  const std::size_t all = wanted_.count * hosts_.ranks();
  const std::size_t padded = wanted_.count * hosts_.members_max();
  const std::size_t members = hosts_.members[seat_.host].size();
  const DType partial = sum_.partial();
  const std::size_t unit = wanted_.count * size_of(partial);
  const auto* send = static_cast<const std::byte*>(wanted_.send);
  std::function<void()> widen;
  if (sum_.widens()) {
    std::byte* const wide = allocate(all * size_of(partial));
    widen = [sum = sum_, send, wide, all] { sum.widen(send, wide, all); };
    send = wide;
  }
  std::byte* const sums = leads() ? allocate(all * size_of(partial)) : nullptr;
  const std::size_t reduced =
      add(Where::local, part(OpKind::reduce, partial, send, sums, all), {}, std::move(widen));
  std::optional<std::size_t> traded;
  std::byte* results = nullptr;
  std::function<void()> finish;
  if (leads()) {
    std::byte* const by_host = allocate(hosts_.count() * padded * size_of(partial));
    std::byte* const own = allocate(padded * size_of(partial));
    results = allocate(members * wanted_.count * element_bytes_);
    traded = add(Where::across, part(OpKind::reduce_scatter, partial, by_host, own, padded),
                 reduced, ranks_to_blocks(sums, by_host, unit));
    finish = [sum = sum_, own, results, count = members * wanted_.count] {
      sum.finish(own, results, count);
    };
  }
  add(Where::local, part(OpKind::scatter, wanted_.dtype, results, wanted_.recv, wanted_.count),
      traded, std::move(finish));
}

/// The host's tensors to its leader; between the leaders, for each two hosts, the units from each
/// rank of the one to each of the other; to each rank its own, in rank order.
void Recipe::all_to_all() {
  const std::size_t unit = wanted_.count * element_bytes_;
  const std::size_t tensor = hosts_.ranks() * unit;
  const std::size_t side = hosts_.members_max();
  const std::size_t members = hosts_.members[seat_.host].size();
  const std::size_t count = wanted_.count * hosts_.ranks();
  std::byte* const sent = leads() ? allocate(members * tensor) : nullptr;
  std::byte* const received = leads() ? allocate(members * tensor) : nullptr;
  const std::size_t gathered =
      add(Where::local, part(OpKind::gather, wanted_.dtype, wanted_.send, sent, count));
  std::optional<std::size_t> traded;
  std::function<void()> to_ranks;
  if (leads()) {
    const std::size_t block = side * side * unit;
    std::byte* const out = allocate(hosts_.count() * block);
    std::byte* const in = allocate(hosts_.count() * block);
    const auto each = [=, &hosts = hosts_](auto&& copy) {
      for (std::size_t host = 0; host < hosts.count(); ++host) {
        for (std::size_t theirs = 0; theirs < hosts.members[host].size(); ++theirs) {
          for (std::size_t ours = 0; ours < members; ++ours) {
            copy(host * block, theirs, ours, ours * tensor + hosts.members[host][theirs] * unit);
          }
        }
      }
    };
    const auto to_hosts = [=] {
      each([=](std::size_t at, std::size_t theirs, std::size_t ours, std::size_t place) {
        std::memcpy(out + at + (ours * side + theirs) * unit, sent + place, unit);
      });
    };
    to_ranks = [=] {
      each([=](std::size_t at, std::size_t theirs, std::size_t ours, std::size_t place) {
        std::memcpy(received + place, in + at + (theirs * side + ours) * unit, unit);
      });
    };
    traded = add(Where::across,
                 part(OpKind::all_to_all, wanted_.dtype, out, in, wanted_.count * side * side),
                 gathered, to_hosts);
  }
  add(Where::local, part(OpKind::scatter, wanted_.dtype, received, wanted_.recv, count), traded,
      std::move(to_ranks));
}

/// The host's units to its leader, the hosts' blocks to that of the root's host; there all units,
/// in rank order, to the root, and past the others.
void Recipe::gather() {
  const Seat root = seat_of(hosts_, wanted_.root.value);
  const bool here = root.host == seat_.host;
  const std::size_t unit = wanted_.count * element_bytes_;
  const std::size_t block = hosts_.members_max() * unit;
  std::byte* const own = leads() ? allocate(block) : nullptr;
  std::byte* const blocks = leads() && here ? allocate(block * hosts_.count()) : nullptr;
  const std::size_t gathered =
      add(Where::local, part(OpKind::gather, wanted_.dtype, wanted_.send, own, wanted_.count));
  std::optional<std::size_t> exchanged;
  if (leads()) {
    Collective across =
        part(OpKind::gather, wanted_.dtype, own, blocks, wanted_.count * hosts_.members_max());
    across.root = Rank(root.host);
    exchanged = add(Where::across, across, gathered);
  }
  if (!here) return;
  std::byte* const all = root.index == seat_.index ? static_cast<std::byte*>(wanted_.recv)
                                                   : allocate(hosts_.ranks() * unit);
  add(Where::local,
      part(OpKind::broadcast, wanted_.dtype, nullptr, all, wanted_.count * hosts_.ranks()),
      exchanged, leads() ? blocks_to_ranks(blocks, all, unit) : nullptr);
}

/// On the root's host all units to its leader, and past the others; the hosts' blocks to their
/// leaders; to each rank its own.
void Recipe::scatter() {
  const Seat root = seat_of(hosts_, wanted_.root.value);
  const bool here = root.host == seat_.host;
  const std::size_t unit = wanted_.count * element_bytes_;
  const std::size_t block = hosts_.members_max() * unit;
  std::byte* all = nullptr;
  std::optional<std::size_t> spread;
  if (here) {
    // Only read at the root, as a broadcast does.
    all = root.index == seat_.index
              ? const_cast<std::byte*>(static_cast<const std::byte*>(wanted_.send))
              : allocate(hosts_.ranks() * unit);
    Collective local =
        part(OpKind::broadcast, wanted_.dtype, nullptr, all, wanted_.count * hosts_.ranks());
    local.root = Rank(root.index);
    spread = add(Where::local, local);
  }
  std::byte* own = nullptr;
  std::optional<std::size_t> received;
  if (leads()) {
    own = allocate(block);
    std::byte* const blocks = here ? allocate(block * hosts_.count()) : nullptr;
    Collective across =
        part(OpKind::scatter, wanted_.dtype, blocks, own, wanted_.count * hosts_.members_max());
    across.root = Rank(root.host);
    received =
        add(Where::across, across, spread, here ? ranks_to_blocks(all, blocks, unit) : nullptr);
  }
  add(Where::local, part(OpKind::scatter, wanted_.dtype, own, wanted_.recv, wanted_.count),
      received);
}

void Recipe::barrier() {
  const Collective barrier = part(OpKind::barrier, DType::uint8, nullptr, nullptr, 0);
  std::optional<std::size_t> met = add(Where::local, barrier);
  if (leads()) met = add(Where::across, barrier, met);
  add(Where::local, barrier, met);
}

}  // namespace

Job make_job(const Hosts& hosts, Seat seat, Operation& operation) {
  return Recipe(hosts, seat, operation).make();
}

}  // namespace cais::runtime::mixed
