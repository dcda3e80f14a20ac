#include "nir/plan.hpp"

#include <algorithm>
#include <sstream>

#include "base/check.hpp"

namespace cais::nir {

Extent Plan::extent(std::uint32_t fragment) const {
  CAIS_DCHECK(fragment < fragments());
  const std::uint32_t unit = fragment / fragments_per_unit;
  const std::uint64_t offset = std::uint64_t{fragment - unit * fragments_per_unit} * fragment_bytes;
  const std::uint64_t left = unit_bytes - offset;
  return {unit, offset, static_cast<std::uint32_t>(std::min<std::uint64_t>(left, fragment_bytes))};
}

std::uint32_t Plan::chunk_of(std::uint32_t fragment) const {
  const std::uint32_t unit = fragment / fragments_per_unit;
  const std::uint32_t part = fragment - unit * fragments_per_unit;
  const std::uint32_t chunks_per_unit =
      (fragments_per_unit + fragments_per_chunk - 1) / fragments_per_chunk;
  return unit * chunks_per_unit + part / fragments_per_chunk;
}

FragmentRange Plan::dealt_to(std::uint8_t index) const {
  CAIS_DCHECK(index < lanes);
  const std::uint64_t all = fragments();
  return {static_cast<std::uint32_t>(all * index / lanes),
          static_cast<std::uint32_t>(all * (index + 1u) / lanes)};
}

bool Plan::contributes_payload(Rank rank) const {
  return unit_bytes != 0 && (combine != Combine::route || rank.value == root);
}

bool Plan::receives_payload(Rank rank, std::uint32_t unit) const {
  if (unit_bytes == 0) return false;
  switch (deliver) {
    case Deliver::all:
      return combine != Combine::route || rank.value != root;
    case Deliver::owner:
      return rank.value == unit;
    case Deliver::root:
      return rank.value == root;
  }
  return false;
}

namespace {

const char* name_of(Combine combine) {
  switch (combine) {
    case Combine::reduce:
      return "reduce";
    case Combine::concat:
      return "concat";
    case Combine::route:
      return "route";
  }
  return "unknown";
}

const char* name_of(Deliver deliver) {
  switch (deliver) {
    case Deliver::all:
      return "all";
    case Deliver::owner:
      return "owner";
    case Deliver::root:
      return "root";
  }
  return "unknown";
}

}  // namespace

std::string to_string(const Plan& plan) {
  std::ostringstream text;
  text << name_of(plan.combine);
  if (plan.reduce_op != ReduceOp::none) {
    text << ' ' << to_string(plan.reduce_op) << " in " << to_string(plan.accumulator);
  }
  text << " of " << to_string(plan.dtype) << ", to " << name_of(plan.deliver) << ", " << plan.ranks
       << " ranks, root " << plan.root << "; " << plan.units << " x " << plan.unit_bytes
       << " bytes, " << plan.fragments_per_unit << " fragments of " << plan.fragment_bytes
       << " each, " << plan.fragments_per_chunk << " to a chunk, over " << unsigned{plan.lanes}
       << (plan.lanes == 1 ? " lane" : " lanes");
  return text.str();
}

}  // namespace cais::nir
