#include "nir/interpret.hpp"

#include <string>

#include "nir/build.hpp"
#include "nir/verify.hpp"
#include "numeric/reduce.hpp"

namespace cais::nir {
namespace {

/// Runs the schedule for one unit.
class Machine {
 public:
  Machine(const TensorOp& op, std::uint32_t unit, std::span<const TensorBytes> inputs,
          std::span<TensorBytes> outputs)
      : op_(op), unit_(unit), inputs_(inputs), outputs_(outputs), dtype_(op.input.dtype) {}

  void run() {
    for (const Stage& stage : op_.schedule.stages()) {
      std::visit([this](const auto& s) { execute(s); }, stage);
    }
  }

 private:
  void execute(const Load& load) {
    const std::size_t bytes = op_.unit_elements * size_of(dtype_);
    for (std::uint16_t rank = 0; rank < op_.ranks; ++rank) {
      if (!load.from.contains(Rank(rank))) continue;
      const auto begin = inputs_[rank].begin() + static_cast<std::ptrdiff_t>(unit_ * bytes);
      loaded_.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(bytes));
    }
    value_ = loaded_.front();
  }

  void execute(const Accumulate& accumulate) {
    std::vector<const std::byte*> units;
    for (const TensorBytes& unit : loaded_) units.push_back(unit.data());
    reduce({.op = accumulate.op, .input = dtype_, .output = accumulate.in}, units);
  }

  void execute(const Concatenate&) {
    value_.clear();
    for (const TensorBytes& unit : loaded_) value_.insert(value_.end(), unit.begin(), unit.end());
  }

  void execute(const Join&) {}

  void execute(const Divide& divide) {
    const std::byte* sum = value_.data();
    reduce({.op = ReduceOp::avg, .input = dtype_, .output = dtype_, .divisor = divide.by},
           {&sum, 1});
  }

  void execute(const Round& round) {
    const std::byte* exact = value_.data();
    reduce({.op = ReduceOp::sum, .input = dtype_, .output = round.to}, {&exact, 1});
  }

  void execute(const Scatter& scatter) {
    for (std::uint16_t rank = 0; rank < op_.ranks; ++rank) {
      if (!scatter.to.contains(Rank(rank)) || (scatter.by_unit && rank != unit_)) continue;
      outputs_[rank] = value_;
    }
  }

  void reduce(const numeric::Reduction& reduction, std::span<const std::byte* const> units) {
    TensorBytes result(op_.unit_elements * size_of(reduction.output));
    std::byte* out = result.data();
    CAIS_CHECK(numeric::reduce_reference(reduction, {&out, 1}, units, op_.unit_elements));
    value_ = std::move(result);
    dtype_ = reduction.output;
  }

  const TensorOp& op_;
  std::uint32_t unit_;
  std::span<const TensorBytes> inputs_;
  std::span<TensorBytes> outputs_;
  DType dtype_;
  std::vector<TensorBytes> loaded_;
  TensorBytes value_;
};

Result<void> check_inputs(const TensorOp& op, std::span<const TensorBytes> inputs) {
  if (inputs.size() != op.ranks) {
    return Error{ErrorCode::invalid_argument, std::to_string(inputs.size()) + " inputs for " +
                                                  std::to_string(op.ranks) + " ranks"};
  }
  const RankSet loaded = std::get<Load>(op.schedule.stages().front()).from;
  const std::uint64_t bytes = op.input.elements() * size_of(op.input.dtype);
  for (std::uint16_t rank = 0; rank < op.ranks; ++rank) {
    if (!loaded.contains(Rank(rank)) || inputs[rank].size() == bytes) continue;
    return Error{ErrorCode::invalid_argument, "the input of rank " + std::to_string(rank) +
                                                  " has " + std::to_string(inputs[rank].size()) +
                                                  " bytes, must have " + std::to_string(bytes)};
  }
  return {};
}

}  // namespace

Result<std::vector<TensorBytes>> interpret(const TensorOp& op,
                                           std::span<const TensorBytes> inputs) {
  if (auto verified = verify(op); !verified) return verified.error();
  if (auto checked = check_inputs(op, inputs); !checked) return checked.error();
  std::vector<TensorBytes> outputs(op.ranks);
  for (std::uint32_t unit = 0; unit < op.units; ++unit) Machine(op, unit, inputs, outputs).run();
  return outputs;
}

Result<std::vector<TensorBytes>> interpret(const wire::CommDescriptor& descriptor,
                                           std::span<const TensorBytes> inputs) {
  auto op = build(descriptor);
  if (!op) return op.error();
  return interpret(*op, inputs);
}

}  // namespace cais::nir
