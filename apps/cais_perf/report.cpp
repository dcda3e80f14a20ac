#include "report.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace cais::perf {
namespace {

using Json = nlohmann::ordered_json;

double ring_factor(OpKind op, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (op) {
    case OpKind::all_reduce:
      return 2 * others;
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
    case OpKind::all_to_all:
      return others;
    default:
      return 1;
  }
}

bool reduces(OpKind op) {
  return op == OpKind::all_reduce || op == OpKind::reduce || op == OpKind::reduce_scatter;
}

bool has_root(OpKind op) { return op == OpKind::broadcast || op == OpKind::reduce; }

std::string redop(const Options& options) {
  return reduces(options.op) ? std::string(to_string(options.reduce_op)) : "none";
}

std::string timing_columns(const Options& options, int ranks, std::size_t bytes,
                           const Timing& timing) {
  return fmt::format(" {:>10.2f} {:>7.2f} {:>7.2f} {:>6}", timing.mean_us,
                     algorithm_bandwidth(bytes, timing.mean_us),
                     bus_bandwidth(options.op, ranks, bytes, timing.mean_us),
                     options.check ? std::to_string(timing.wrong) : "N/A");
}

Json timing_json(const Options& options, int ranks, std::size_t bytes, const Timing& timing) {
  Json json{{"time_us", timing.mean_us},
            {"us_min", timing.sorted_us.front()},
            {"p50_us", timing.percentile_us(0.5)},
            {"p99_us", timing.percentile_us(0.99)},
            {"p999_us", timing.percentile_us(0.999)},
            {"algbw_gbs", algorithm_bandwidth(bytes, timing.mean_us)},
            {"busbw_gbs", bus_bandwidth(options.op, ranks, bytes, timing.mean_us)}};
  json["wrong"] = options.check ? Json(timing.wrong) : Json();
  return json;
}

double rounded(double us) { return std::round(us * 100) / 100; }

}  // namespace

double algorithm_bandwidth(std::size_t bytes, double us) {
  return us > 0 ? static_cast<double>(bytes) / us / 1e3 : 0;
}

double bus_bandwidth(OpKind op, int ranks, std::size_t bytes, double us) {
  return algorithm_bandwidth(bytes, us) * ring_factor(op, ranks);
}

std::string table_head(const Options& options, int ranks, const std::string& transport) {
  return fmt::format(
      "# {}: {} ranks, {}, {} memory; {} iterations after {}\n"
      "#\n"
      "#{:>63}{:>10}{:>44}\n"
      "#{:>11} {:>11} {:>9} {:>7} {:>4} {:>10} {:>7} {:>7} {:>6} {:>10} {:>7} {:>7} {:>6} {:>10} "
      "{:>10} {:>10}\n"
      "#{:>11} {:>11} {:>9} {:>7} {:>4} {:>10} {:>7} {:>7} {:>6} {:>10} {:>7} {:>7} {:>6} {:>10} "
      "{:>10} {:>10}\n",
      to_string(options.op), ranks, transport, options.cais_memory ? "cais" : "any",
      options.iterations, options.warmup, "out-of-place", "", "in-place", "size", "count", "type",
      "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong",
      "p50", "p99", "p99.9", "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "",
      "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(us)", "(us)");
}

std::string table_row(const Options& options, int ranks, const Measurement& result) {
  const std::string in_place =
      result.in_place ? timing_columns(options, ranks, result.bytes, *result.in_place)
                      : fmt::format(" {:>10} {:>7} {:>7} {:>6}", "N/A", "N/A", "N/A", "N/A");
  return fmt::format(" {:>11} {:>11} {:>9} {:>7} {:>4}{}{} {:>10.2f} {:>10.2f} {:>10.2f}",
                     result.bytes, result.count, to_string(options.dtype), redop(options),
                     has_root(options.op) ? options.root : -1,
                     timing_columns(options, ranks, result.bytes, result.out_of_place), in_place,
                     result.out_of_place.percentile_us(0.5),
                     result.out_of_place.percentile_us(0.99),
                     result.out_of_place.percentile_us(0.999));
}

std::string table_foot(const Options& options, int ranks, const std::vector<Measurement>& results) {
  double sum = 0;
  std::size_t timings = 0, wrong = 0;
  const auto take = [&](std::size_t bytes, const Timing& timing) {
    sum += bus_bandwidth(options.op, ranks, bytes, timing.mean_us);
    wrong += timing.wrong;
    ++timings;
  };
  for (const Measurement& result : results) {
    take(result.bytes, result.out_of_place);
    if (result.in_place) take(result.bytes, *result.in_place);
  }
  return fmt::format("# Wrong elements: {}\n# Avg bus bandwidth: {:.4f} GB/s\n",
                     options.check ? std::to_string(wrong) : "not checked",
                     timings > 0 ? sum / static_cast<double>(timings) : 0.0);
}

std::string json_line(const Options& options, int ranks, const Measurement& result) {
  const Timing& timing = result.out_of_place;
  return Json{{"op", to_string(options.op)},
              {"ranks", ranks},
              {"bytes", result.bytes_asked},
              {"us", rounded(timing.percentile_us(0.5))},
              {"us_min", rounded(timing.sorted_us.front())},
              {"p99_us", rounded(timing.percentile_us(0.99))},
              {"p999_us", rounded(timing.percentile_us(0.999))},
              {"wrong", timing.wrong}}
      .dump();
}

bool write_json(const Options& options, int ranks, const std::string& transport,
                const std::vector<Measurement>& results) {
  utsname host{};
  uname(&host);
  Json json{{"program", "cais_perf"}, {"version", cais_version()}, {"kernel", host.release}};
  json["config"] = {{"op", to_string(options.op)},
                    {"ranks", ranks},
                    {"transport", transport},
                    {"memory", options.cais_memory ? "cais" : "any"},
                    {"type", to_string(options.dtype)},
                    {"redop", redop(options)},
                    {"root", has_root(options.op) ? options.root : -1},
                    {"iterations", options.iterations},
                    {"warmup", options.warmup},
                    {"method", options.lines ? "together" : "back to back"}};
  json["results"] = Json::array();
  for (const Measurement& result : results) {
    Json line{{"size", result.bytes}, {"count", result.count}};
    line["out_of_place"] = timing_json(options, ranks, result.bytes, result.out_of_place);
    line["in_place"] =
        result.in_place ? timing_json(options, ranks, result.bytes, *result.in_place) : Json();
    json["results"].push_back(std::move(line));
  }
  std::ofstream file(options.json_file);
  file << json.dump(2) << '\n';
  return static_cast<bool>(file.flush());
}

}  // namespace cais::perf
