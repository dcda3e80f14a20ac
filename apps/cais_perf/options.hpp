// cais_perf/options.hpp — what the user asks cais_perf to measure.
#pragma once

#include <cstddef>
#include <string>

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

/// Parses the command line. Ends the process after --help (0) and on wrong words (not 0), with a
/// message.
Options parse_options(int argc, char** argv);

}  // namespace cais::perf
