// fuzz/descriptor.cpp — any 128 bytes as a CommDescriptor. What is valid makes a tensor op that
// verifies, and a plan whose fragments cover each unit once and lie inside it; what this switch
// cannot execute is refused in words.
#include "wire/descriptor.hpp"

#include <algorithm>

#include "fuzz/input.hpp"
#include "nir/build.hpp"
#include "nir/targets/host/lower.hpp"
#include "nir/verify.hpp"

using namespace cais;

namespace {

/// Of a fragment at each end of each lane's share, and of its neighbours.
void check_fragment(const nir::Plan& plan, std::uint32_t fragment) {
  const nir::Extent extent = plan.extent(fragment);
  CAIS_CHECK(extent.unit < plan.units);
  CAIS_CHECK(extent.bytes <= plan.fragment_bytes);
  CAIS_CHECK(extent.offset <= plan.unit_bytes && extent.bytes <= plan.unit_bytes - extent.offset);
  const bool last = fragment % plan.fragments_per_unit == plan.fragments_per_unit - 1;
  if (last) CAIS_CHECK(extent.offset + extent.bytes == plan.unit_bytes);
  if (!last) {
    const nir::Extent next = plan.extent(fragment + 1);
    CAIS_CHECK(next.unit == extent.unit && next.offset == extent.offset + extent.bytes);
    CAIS_CHECK(plan.chunk_of(fragment + 1) - plan.chunk_of(fragment) <= 1);
  }
}

void check_plan(const nir::Plan& plan) {
  CAIS_CHECK(plan.fragments() >= 1 && plan.fragments() <= wire::fragments_max);
  CAIS_CHECK(plan.root < plan.ranks);
  std::uint32_t dealt = 0;
  for (std::uint8_t lane = 0; lane < plan.lanes; ++lane) {
    const nir::FragmentRange range = plan.dealt_to(lane);
    CAIS_CHECK(range.begin == dealt && range.end >= range.begin);
    dealt = range.end;
    if (range.count() == 0) continue;
    check_fragment(plan, range.begin);
    check_fragment(plan, range.begin + range.count() / 2);
    check_fragment(plan, range.end - 1);
  }
  CAIS_CHECK(dealt == plan.fragments());
  for (std::uint16_t rank = 0; rank < plan.ranks; ++rank) {
    (void)plan.contributes_payload(Rank(rank));
    (void)plan.receives_payload(Rank(rank), plan.units - 1);
  }
  CAIS_CHECK(!nir::to_string(plan).empty());
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = fuzz::as_bytes(data, size);
  const Result<wire::CommDescriptor> descriptor = wire::parse_descriptor(bytes);
  if (!descriptor) {
    CAIS_CHECK(!descriptor.error().message.empty());
    return 0;
  }
  CAIS_CHECK(std::ranges::equal(wire::as_bytes(*descriptor), bytes));
  CAIS_CHECK(wire::validate(*descriptor).ok());
  CAIS_CHECK(!wire::to_string(*descriptor).empty());
  (void)wire::hash(*descriptor);

  const Result<nir::TensorOp> op = nir::build(*descriptor);
  if (op) CAIS_CHECK(nir::verify(*op).ok());
  const Result<nir::Plan> plan = nir::lower(*descriptor);
  if (!plan) CAIS_CHECK(!plan.error().message.empty());
  if (plan) check_plan(*plan);
  return 0;
}
