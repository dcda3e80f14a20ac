// cais_perf — measures the collectives of CAIS through its C API.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <memory>

#include "cais/cais.h"
#include "launch.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "report.hpp"
#include "workload.hpp"

namespace cais::perf {
namespace {

using Comm = std::unique_ptr<cais_comm, decltype(&cais_comm_destroy)>;

std::size_t wrong(const std::vector<Measurement>& results) {
  std::size_t sum = 0;
  for (const Measurement& result : results) {
    sum += result.out_of_place.wrong + (result.in_place ? result.in_place->wrong : 0);
  }
  return sum;
}

int run_rank(const Options& options) {
  cais_comm* made = nullptr;
  require(
      cais_comm_create(options.rendezvous.c_str(), "cais_perf", options.rank, options.world, &made),
      "cais_comm_create");
  const Comm comm(made, cais_comm_destroy);
  const std::string transport = cais_comm_transport(comm.get());
  const bool speaks = options.rank == 0;
  const auto say = [&](const std::string& text) {
    if (!speaks) return;
    fmt::print("{}", text);
    std::fflush(stdout);
  };
  if (!options.lines) say(table_head(options, options.world, transport));
  const std::vector<Measurement> results =
      measure(comm.get(), options, [&](const Measurement& result) {
        say((options.lines ? json_line(options, options.world, result)
                           : table_row(options, options.world, result)) +
            "\n");
      });
  if (!options.lines) say(table_foot(options, options.world, results));
  if (speaks && !options.json_file.empty() &&
      !write_json(options, options.world, transport, results)) {
    throw Failure("cannot write " + options.json_file);
  }
  return wrong(results) > 0 ? exit_wrong_data : 0;
}

}  // namespace
}  // namespace cais::perf

int main(int argc, char** argv) {
  const auto parsed = cais::perf::parse_options(argc, argv, std::cout, std::cerr);
  if (const auto* exit = std::get_if<cais::perf::ExitStatus>(&parsed)) return exit->value;
  const auto& options = std::get<cais::perf::Options>(parsed);
  if (!options.is_rank()) return cais::perf::launch_ranks(options.ranks, argc, argv);
  try {
    return cais::perf::run_rank(options);
  } catch (const cais::perf::Failure& failure) {
    fmt::print(stderr, "cais_perf: rank {}: {}\n", options.rank, failure.what());
    return 1;
  }
}
