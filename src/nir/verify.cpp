#include "nir/verify.hpp"

#include <string>

namespace cais::nir {
namespace {

/// What one stage hands to the next.
struct Flow {
  enum class Form { nothing, units, value, scattered };
  Form form = Form::nothing;
  RankSet loaded{};
  DType dtype = DType::float32;
  std::uint64_t elements = 0;  // of the value
  bool combined = false;       // the loaded units were made one value
  bool summed = false;         // the value is a sum that nothing has divided or rounded yet
};

Error wrong(const TensorOp& op, const std::string& what) {
  return Error{ErrorCode::invalid_argument,
               "tensor_op " + std::string(to_string(op.kind)) + ": " + what};
}

/// Carries the flow through one stage after another; the first one that does not fit is an error.
class Walk {
 public:
  explicit Walk(const TensorOp& op) : op_(op) {}

  Result<Flow> run() {
    for (const Stage& stage : op_.schedule.stages()) {
      ++number_;
      name_ = name_of(stage);
      if (auto step = std::visit([this](const auto& s) { return take(s); }, stage); !step) {
        return step.error();
      }
    }
    return flow_;
  }

 private:
  Result<void> take(const Load& load) {
    if (flow_.form != Flow::Form::nothing) return fail("only the first stage loads");
    if (auto ranks = check_ranks(load.from); !ranks) return ranks;
    const bool alone = load.from.count() == 1;
    flow_ = {.form = alone ? Flow::Form::value : Flow::Form::units,
             .loaded = load.from,
             .dtype = op_.input.dtype,
             .elements = op_.unit_elements};
    return {};
  }

  Result<void> take(const Accumulate& accumulate) {
    if (auto units = need_units(); !units) return units;
    if (accumulate.op == ReduceOp::none || accumulate.op == ReduceOp::avg) {
      return fail("must be sum, min, max or product, not " + std::string(to_string(accumulate.op)));
    }
    if (is_opaque(flow_.dtype)) {
      return fail("cannot add " + std::string(to_string(flow_.dtype)) + ", it is opaque");
    }
    const bool widens = is_half(flow_.dtype) && accumulate.in == DType::float32;
    if (accumulate.in != flow_.dtype && !widens) {
      return fail("takes " + std::string(to_string(flow_.dtype)) + " in " +
                  std::string(to_string(accumulate.in)) +
                  ", must be the same type, or float32 for " + "halves");
    }
    flow_.form = Flow::Form::value;
    flow_.dtype = accumulate.in;
    flow_.combined = true;
    flow_.summed = accumulate.op == ReduceOp::sum;
    return {};
  }

  Result<void> take(const Concatenate&) {
    if (auto units = need_units(); !units) return units;
    flow_.form = Flow::Form::value;
    flow_.elements = op_.unit_elements * static_cast<std::uint64_t>(flow_.loaded.count());
    flow_.combined = true;
    return {};
  }

  Result<void> take(const Join&) {
    if (auto units = need_units(); !units) return units;
    if (op_.unit_elements != 0) {
      return fail("would lose " + std::to_string(op_.unit_elements) + " elements of each rank");
    }
    flow_.form = Flow::Form::value;
    flow_.combined = true;
    return {};
  }

  Result<void> take(const Divide& divide) {
    if (flow_.form != Flow::Form::value || !flow_.summed) return fail("must follow a sum");
    if (divide.by == 0) return fail("divides by zero");
    flow_.summed = false;
    return {};
  }

  Result<void> take(const Round& round) {
    if (flow_.form != Flow::Form::value || flow_.dtype != DType::float32 || !is_half(round.to)) {
      return fail("makes a half of a float32 value");
    }
    flow_.dtype = round.to;
    flow_.summed = false;
    return {};
  }

  Result<void> take(const Scatter& scatter) {
    if (flow_.form == Flow::Form::units) return fail("the loaded units were not combined");
    if (flow_.form != Flow::Form::value) return fail("there is no value to hand out");
    if (auto ranks = check_ranks(scatter.to); !ranks) return ranks;
    const std::uint32_t units = scatter.by_unit ? op_.ranks : 1;
    if (op_.units != units) {
      return fail("hands out " + std::to_string(units) + " units, but there are " +
                  std::to_string(op_.units));
    }
    flow_.form = Flow::Form::scattered;
    return {};
  }

  /// Combining needs loaded units that nothing has combined yet; one unit alone will do.
  Result<void> need_units() {
    if (flow_.loaded.count() == 0 || flow_.form == Flow::Form::scattered || flow_.combined) {
      return fail("must follow a load");
    }
    return {};
  }

  Result<void> check_ranks(RankSet set) {
    if (set.count() == 0) return fail("names no rank");
    if ((set.bits & ~RankSet::all(op_.ranks).bits) != 0) {
      return fail("names a rank that the group of " + std::to_string(op_.ranks) + " does not have");
    }
    return {};
  }

  Error fail(const std::string& what) const {
    return wrong(op_, "stage " + std::to_string(number_) + " (" + name_ + ") " + what);
  }

  const TensorOp& op_;
  Flow flow_;
  int number_ = 0;
  const char* name_ = "";
};

Result<void> check_op(const TensorOp& op) {
  if (op.ranks < 1 || op.ranks > ranks_max) {
    return wrong(op, "ranks is " + std::to_string(op.ranks) + ", must be in [1, 64]");
  }
  if (op.units != 1 && op.units != op.ranks) {
    return wrong(op, "units is " + std::to_string(op.units) + ", must be 1 or the ranks");
  }
  if (op.input.dims > TensorType::dims_max || op.output.dims > TensorType::dims_max) {
    return wrong(op, "a tensor has more dims than " + std::to_string(TensorType::dims_max));
  }
  if (op.input.elements() != op.units * op.unit_elements) {
    return wrong(op, "the input has " + std::to_string(op.input.elements()) + " elements, but " +
                         std::to_string(op.units) + " units hold " +
                         std::to_string(op.units * op.unit_elements));
  }
  const Tiling& tiling = op.tiling;
  if (tiling.lanes == 0 || tiling.fragment_bytes < wire::fragment_bytes_step ||
      tiling.fragment_bytes % wire::fragment_bytes_step != 0 ||
      tiling.chunk_bytes < tiling.fragment_bytes) {
    return wrong(op,
                 "the tiling needs a lane, fragments in steps of 16 bytes, and chunks no "
                 "smaller than a fragment");
  }
  return {};
}

}  // namespace

Result<void> verify(const TensorOp& op) {
  if (auto fields = check_op(op); !fields) return fields;
  auto walked = Walk(op).run();
  if (!walked) return walked.error();
  const Flow& end = *walked;
  if (end.form != Flow::Form::scattered) return wrong(op, "the schedule does not end in a scatter");
  if (end.dtype != op.output.dtype) {
    return wrong(op, "the schedule makes " + std::string(to_string(end.dtype)) +
                         ", but the output is " + std::string(to_string(op.output.dtype)));
  }
  if (end.elements != op.output.elements()) {
    return wrong(op, "the schedule makes " + std::to_string(end.elements) +
                         " elements, but the output has " + std::to_string(op.output.elements()));
  }
  return {};
}

}  // namespace cais::nir
