// Every reduction that there is a kernel for, and every instruction set that it was compiled for.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "numeric/reduce.hpp"

namespace cais::numeric {

inline constexpr DType dtypes[] = {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                                   DType::int8,    DType::uint8,   DType::int32,   DType::int64};
inline constexpr ReduceOp ops[] = {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max,
                                   ReduceOp::product};

inline std::vector<Reduction> all_reductions(std::uint32_t divisor) {
  std::vector<Reduction> reductions;
  for (const ReduceOp op : ops) {
    for (const DType dtype : dtypes) reductions.push_back({op, dtype, dtype, divisor});
    for (const DType half : {DType::float16, DType::bfloat16}) {
      reductions.push_back({op, half, DType::float32, divisor});
      reductions.push_back({op, DType::float32, half, divisor});
    }
  }
  return reductions;
}

inline std::string name_of(const Reduction& reduction) {
  return std::string(to_string(reduction.op)) + " " + std::string(to_string(reduction.input)) +
         " -> " + std::string(to_string(reduction.output));
}

/// Restricts kernels to one instruction set at a time; all of them again at the end.
class InstructionSets {
 public:
  ~InstructionSets() { choose(0); }
  /// Calls `test` once for every instruction set that kernels were compiled for and that runs here.
  template <typename Test>
  void for_each(Test test) const {
    choose(0);
    std::set<std::string> seen;
    for (std::int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
      choose(rest & -rest);
      if (!seen.insert(instruction_set()).second) continue;
      SCOPED_TRACE(instruction_set());
      test();
    }
  }

 private:
  static void choose(std::int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

}  // namespace cais::numeric
