// cais_perf/workload.hpp — one collective on buffers of its own: run, prepared and checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "cais/cais.h"
#include "data.hpp"
#include "options.hpp"

namespace cais::perf {

/// A call of the C API that failed, with its sentence.
class Failure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws a Failure that says which call it was.
void require(cais_status status, const char* call);

enum class Place : std::uint8_t { out_of_place, in_place };

/// Memory for the run, from cais_alloc or aligned as malloc's large blocks are.
class Memory {
 public:
  Memory(std::size_t bytes, bool from_cais);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();
  std::byte* data() const { return data_; }

 private:
  bool from_cais_;
  std::byte* data_;
};

class Workload {
 public:
  /// Buffers for tensors of up to options.bytes_max.
  Workload(cais_comm* comm, const Options& options);

  /// From now on the tensor has as many bytes as whole elements, the same at all ranks, allow.
  void resize(std::size_t bytes);
  std::size_t bytes() const;
  std::size_t count() const { return unit_ * units_; }
  bool in_place_exists() const;

  /// Inputs with this rank's pattern of that generation, outputs with nonsense.
  void prepare(Place place, int generation);
  /// The collective, once.
  void run(Place place);
  /// Elements of this rank's result that are not what they should be.
  std::size_t wrong(Place place) const;

 private:
  std::size_t unit_bytes() const { return unit_ * size_of(options_.dtype); }
  const std::byte* send(Place place) const;
  std::byte* recv(Place place) const;
  Pattern contribution(std::size_t rank) const;
  std::size_t wrong_blocks(const std::byte* result, std::size_t first) const;

  cais_comm* comm_;
  const Options& options_;
  std::size_t rank_;
  std::size_t ranks_;
  std::size_t units_;     // in the tensor: 1, or one per rank
  std::size_t unit_ = 0;  // elements of one
  int generation_ = 0;
  Memory input_;
  Memory output_;
};

}  // namespace cais::perf
