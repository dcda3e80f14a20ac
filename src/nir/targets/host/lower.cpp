#include "nir/targets/host/lower.hpp"

#include <string>

#include "nir/build.hpp"
#include "nir/verify.hpp"

namespace cais::nir {
namespace {

/// Reads the schedule of a verified op into the plan, stage by stage.
class Lowering {
 public:
  explicit Lowering(const TensorOp& op) : op_(op), all_(RankSet::all(op.ranks)) {}

  Result<Plan> run() {
    set_placement();
    for (const Stage& stage : op_.schedule.stages()) {
      if (auto step = std::visit([this](const auto& s) { return take(s); }, stage); !step) {
        return step.error();
      }
    }
    if (op_.input.dtype != op_.output.dtype) return refuse("gives back the type that came in");
    if (op_.guard_bits != 0) return refuse("adds without guard bits");
    return plan_;
  }

 private:
  void set_placement() {
    const Tiling& tiling = op_.tiling;
    plan_.dtype = op_.input.dtype;
    plan_.accumulator = op_.input.dtype;
    plan_.ranks = op_.ranks;
    plan_.units = op_.units;
    plan_.unit_bytes = op_.unit_elements * size_of(op_.input.dtype);
    plan_.fragment_bytes = plan_.unit_bytes == 0 ? 0 : tiling.fragment_bytes;
    plan_.fragments_per_unit = static_cast<std::uint32_t>(
        wire::fragments_per_unit(plan_.unit_bytes, tiling.fragment_bytes));
    plan_.fragments_per_chunk = tiling.chunk_bytes / tiling.fragment_bytes;
    plan_.lanes = tiling.lanes;
  }

  // A single unit is passed on as it is, unless a later stage says otherwise.
  Result<void> take(const Load& load) {
    if (load.from != all_ && load.from.count() != 1) return refuse("loads from all ranks or one");
    loaded_ = load.from;
    plan_.combine = Combine::route;
    plan_.root = load.from.first().value;
    return {};
  }

  Result<void> take(const Accumulate& accumulate) {
    plan_.reduce_op = accumulate.op;
    plan_.accumulator = accumulate.in;
    return combine_all(Combine::reduce);
  }
  Result<void> take(const Concatenate&) { return combine_all(Combine::concat); }
  Result<void> take(const Join&) { return combine_all(Combine::reduce); }

  Result<void> take(const Divide& divide) {
    if (divide.by != op_.ranks) return refuse("divides by the number of ranks");
    plan_.reduce_op = ReduceOp::avg;
    return {};
  }

  Result<void> take(const Round&) {
    if (plan_.combine != Combine::reduce) return refuse("rounds what it has reduced");
    return {};
  }

  Result<void> take(const Scatter& scatter) {
    if (scatter.by_unit) {
      plan_.deliver = Deliver::owner;
      return scatter.to == all_ ? Result<void>() : refuse("hands units out to all their owners");
    }
    plan_.deliver = scatter.to == all_ ? Deliver::all : Deliver::root;
    if (plan_.deliver == Deliver::all) return {};
    if (scatter.to.count() != 1) return refuse("hands a value out to all ranks or one");
    if (plan_.combine == Combine::route) return refuse("routes to all ranks or to the owners");
    plan_.root = scatter.to.first().value;
    return {};
  }

  Result<void> combine_all(Combine combine) {
    if (loaded_ != all_) return refuse("combines the units of all ranks");
    plan_.combine = combine;
    plan_.root = 0;
    return {};
  }

  Error refuse(const std::string& ability) const {
    return Error{ErrorCode::unsupported, "tensor_op " + std::string(to_string(op_.kind)) +
                                             " does not fit the host target, which " + ability};
  }

  const TensorOp& op_;
  const RankSet all_;
  RankSet loaded_{};
  Plan plan_;
};

}  // namespace

Result<Plan> lower(const TensorOp& op) { return Lowering(op).run(); }

Result<Plan> lower(const wire::CommDescriptor& descriptor) {
  auto op = build(descriptor);
  if (!op) return op.error();
  if (auto verified = verify(*op); !verified) return verified.error();
  return lower(*op);
}

}  // namespace cais::nir
