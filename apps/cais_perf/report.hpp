// cais_perf/report.hpp — the results as nccl-tests' table, as lines of JSON, and as a JSON file.
#pragma once

#include <string>
#include <vector>

#include "measure.hpp"
#include "options.hpp"

namespace cais::perf {

/// Gigabytes per second: of the tensor, and of what a ring would carry on each link.
double algorithm_bandwidth(std::size_t bytes, double us);
double bus_bandwidth(OpKind op, int ranks, std::size_t bytes, double us);

std::string table_head(const Options& options, int ranks, const std::string& transport);
std::string table_row(const Options& options, int ranks, const Measurement& result);
std::string table_foot(const Options& options, int ranks, const std::vector<Measurement>& results);

/// One line, with no newline.
std::string json_line(const Options& options, int ranks, const Measurement& result);
/// The whole run. False when the file cannot be written.
bool write_json(const Options& options, int ranks, const std::string& transport,
                const std::vector<Measurement>& results);

}  // namespace cais::perf
