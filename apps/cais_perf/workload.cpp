#include "workload.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace cais::perf {
namespace {

constexpr std::size_t alignment = 4096;
constexpr int nonsense = 0xa5;

bool reduces(OpKind op) {
  return op == OpKind::all_reduce || op == OpKind::reduce || op == OpKind::reduce_scatter;
}

bool in_units(OpKind op) {
  return op == OpKind::all_gather || op == OpKind::reduce_scatter || op == OpKind::all_to_all;
}

// What moves is filled as for a sum: numbers that tell ranks and places apart.
ReduceOp pattern_op(const Options& options) {
  return reduces(options.op) ? options.reduce_op : ReduceOp::sum;
}

}  // namespace

void require(cais_status status, const char* call) {
  if (status != CAIS_OK) throw Failure(std::string(call) + ": " + cais_last_error());
}

Memory::Memory(std::size_t bytes, bool from_cais) : from_cais_(from_cais) {
  const std::size_t rounded =
      (std::max(bytes, std::size_t{1}) + alignment - 1) / alignment * alignment;
  data_ = static_cast<std::byte*>(from_cais ? cais_alloc(rounded)
                                            : std::aligned_alloc(alignment, rounded));
  if (data_ == nullptr)
    throw Failure("no memory for a tensor of " + std::to_string(bytes) + " bytes");
}

Memory::~Memory() { from_cais_ ? cais_free(data_) : std::free(data_); }

Workload::Workload(cais_comm* comm, const Options& options)
    : comm_(comm),
      options_(options),
      rank_(static_cast<std::size_t>(cais_comm_rank(comm))),
      ranks_(static_cast<std::size_t>(cais_comm_ranks(comm))),
      units_(in_units(options.op) ? ranks_ : 1),
      input_(options.bytes_max, options.cais_memory),
      output_(options.bytes_max, options.cais_memory) {}

void Workload::resize(std::size_t bytes) {
  unit_ = options_.op == OpKind::barrier ? 0 : bytes / size_of(options_.dtype) / units_;
}

std::size_t Workload::bytes() const { return units_ * unit_bytes(); }

bool Workload::in_place_exists() const {
  return options_.op != OpKind::all_to_all && options_.op != OpKind::barrier;
}

// In place, the whole tensor lies in the output buffer, this rank's unit where it belongs. A
// broadcast is always in place.
const std::byte* Workload::send(Place place) const {
  if (place == Place::out_of_place) return input_.data();
  return output_.data() + (options_.op == OpKind::all_gather ? rank_ * unit_bytes() : 0);
}

std::byte* Workload::recv(Place place) const {
  const bool own_unit = place == Place::in_place && options_.op == OpKind::reduce_scatter;
  return output_.data() + (own_unit ? rank_ * unit_bytes() : 0);
}

Pattern Workload::contribution(std::size_t rank) const {
  return Pattern::contribution(options_.dtype, pattern_op(options_), static_cast<int>(rank),
                               generation_);
}

void Workload::prepare(Place place, int generation) {
  generation_ = generation;
  const Pattern mine = contribution(rank_);
  std::memset(output_.data(), nonsense, bytes());
  const bool root = static_cast<int>(rank_) == options_.root;
  if (options_.op == OpKind::broadcast) {
    if (root) mine.fill(output_.data(), 0, unit_);
    return;
  }
  const std::size_t contributed = options_.op == OpKind::all_gather ? unit_ : units_ * unit_;
  mine.fill(const_cast<std::byte*>(send(place)), 0, contributed);
}

void Workload::run(Place place) {
  const auto dtype = static_cast<cais_dtype>(options_.dtype);
  const auto op = static_cast<cais_reduce_op>(options_.reduce_op);
  const std::byte* const from = send(place);
  std::byte* const to = recv(place);
  switch (options_.op) {
    case OpKind::all_reduce:
      return require(cais_all_reduce(comm_, from, to, unit_, dtype, op), "cais_all_reduce");
    case OpKind::reduce:
      return require(cais_reduce(comm_, from, to, unit_, dtype, op, options_.root), "cais_reduce");
    case OpKind::reduce_scatter:
      return require(cais_reduce_scatter(comm_, from, to, unit_, dtype, op), "cais_reduce_scatter");
    case OpKind::all_gather:
      return require(cais_all_gather(comm_, from, to, unit_, dtype), "cais_all_gather");
    case OpKind::broadcast:
      return require(cais_broadcast(comm_, to, unit_, dtype, options_.root), "cais_broadcast");
    case OpKind::all_to_all:
      return require(cais_all_to_all(comm_, from, to, unit_, dtype), "cais_all_to_all");
    default:
      return require(cais_barrier(comm_), "cais_barrier");
  }
}

// Rank b's unit that begins at element `first` of its contribution stands in block b.
std::size_t Workload::wrong_blocks(const std::byte* result, std::size_t first) const {
  std::size_t wrong = 0;
  for (std::size_t block = 0; block < ranks_; ++block) {
    wrong += contribution(block).wrong(result + block * unit_bytes(), first, unit_);
  }
  return wrong;
}

std::size_t Workload::wrong(Place place) const {
  const std::byte* const result = recv(place);
  const Pattern reduced =
      Pattern::reduced(options_.dtype, pattern_op(options_), static_cast<int>(ranks_), generation_);
  switch (options_.op) {
    case OpKind::all_reduce:
      return reduced.wrong(result, 0, unit_);
    case OpKind::reduce:
      return static_cast<int>(rank_) == options_.root ? reduced.wrong(result, 0, unit_) : 0;
    case OpKind::reduce_scatter:
      return reduced.wrong(result, rank_ * unit_, unit_);
    case OpKind::all_gather:
      return wrong_blocks(result, 0);
    case OpKind::all_to_all:
      return wrong_blocks(result, rank_ * unit_);
    case OpKind::broadcast:
      return contribution(static_cast<std::size_t>(options_.root)).wrong(result, 0, unit_);
    default:
      return 0;
  }
}

}  // namespace cais::perf
