// cais_perf/options.hpp — what the user asks cais_perf to measure.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <variant>

#include "base/types.hpp"

namespace cais::perf {

struct Options {
  OpKind op = OpKind::all_reduce;
  // The sizes: bytes of the whole tensor (of an all-gather the gathered one).
  std::size_t bytes_min = 8;
  std::size_t bytes_max = std::size_t{32} << 20;
  std::size_t step_factor = 2;
  std::size_t step_bytes = 0;  // 0: multiply by step_factor
  int iterations = 20;
  int warmup = 5;
  bool check = true;
  DType dtype = DType::float32;
  ReduceOp reduce_op = ReduceOp::sum;
  int root = 0;

  bool cais_memory = false;  // buffers from cais_alloc
  bool lines = false;        // --jsonl
  std::string json_file;

  int ranks = 2;  // started here, unless `rank` is given
  int rank = -1;  // this process is this rank of `world`
  int world = 0;
  std::string rendezvous;  // HOST:PORT

  bool is_rank() const { return rank >= 0; }
};

/// What a command line that asks for no measurement ends the process with: 0 after --help and
/// --version, not 0 after wrong words.
struct ExitStatus {
  int value;
};

/// Parses the command line. What --help and --version say goes to `out`, what is wrong to `err`.
std::variant<Options, ExitStatus> parse_options(int argc, const char* const* argv,
                                                std::ostream& out, std::ostream& err);

}  // namespace cais::perf
