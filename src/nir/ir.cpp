#include "nir/ir.hpp"

namespace cais::nir {

const char* name_of(const Stage& stage) {
  static constexpr std::array<const char*, std::variant_size_v<Stage>> names{
      "load", "accumulate", "concatenate", "join", "divide", "round", "scatter"};
  return names[stage.index()];
}

}  // namespace cais::nir
