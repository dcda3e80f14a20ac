#include "options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cais/cais.h"

namespace cais::perf {
namespace {

template <typename Value>
using Names = std::vector<std::pair<std::string, Value>>;

template <typename Value>
std::string listed(const Names<Value>& names) {
  std::string list;
  for (const auto& [name, value] : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

const Names<OpKind> ops{{"all_reduce", OpKind::all_reduce},
                        {"all_gather", OpKind::all_gather},
                        {"reduce_scatter", OpKind::reduce_scatter},
                        {"broadcast", OpKind::broadcast},
                        {"reduce", OpKind::reduce},
                        {"all_to_all", OpKind::all_to_all},
                        {"barrier", OpKind::barrier}};

const Names<DType> dtypes{
    {"float32", DType::float32},   {"float", DType::float32},   {"float64", DType::float64},
    {"double", DType::float64},    {"float16", DType::float16}, {"half", DType::float16},
    {"bfloat16", DType::bfloat16}, {"int8", DType::int8},       {"uint8", DType::uint8},
    {"int32", DType::int32},       {"int64", DType::int64}};

const Names<ReduceOp> reduce_ops{{"sum", ReduceOp::sum},      {"avg", ReduceOp::avg},
                                 {"min", ReduceOp::min},      {"max", ReduceOp::max},
                                 {"prod", ReduceOp::product}, {"product", ReduceOp::product}};

const Names<bool> memories{{"any", false}, {"cais", true}};

const char* const description =
    "Measures one collective of CAIS over a range of sizes, with the flags and columns of\n"
    "nccl-tests, and checks its results bit by bit.\n"
    "\n"
    "  cais_perf all_reduce --ranks 4                        4 ranks on this machine\n"
    "  cais_perf all_gather -b 1K -e 64M -f 4 -d bfloat16    sizes 1 K, 4 K, ... 64 M\n"
    "  cais_perf all_reduce --rank R --world N --rendezvous HOST:PORT\n"
    "                                                        one rank of N, also on many hosts\n"
    "\n"
    "Times are microseconds of the slowest rank. Of the table: iterations back to back; `time` is\n"
    "their mean, p50 p99 p99.9 their percentiles out of place. algbw is the tensor's bytes by\n"
    "time; busbw multiplies it by what a ring would have to carry (2(N-1)/N of an all-reduce,\n"
    "(N-1)/N of all-gather, reduce-scatter and all-to-all), as nccl-tests does. `#wrong` counts\n"
    "elements that are not what they should be. Settings: the CAIS_* environment\n"
    "(docs/settings.md). The exit status is not 0 when data was wrong or a rank failed.";

// An option whose value is one of the names; help and errors list them.
template <typename Value>
CLI::Option* add_named(CLI::App& app, const std::string& name, const Names<Value>& names,
                       Value* value, const std::string& help) {
  const auto take = [&names, value, name](const std::string& word) {
    const auto at = std::find_if(names.begin(), names.end(),
                                 [&](const auto& each) { return each.first == word; });
    if (at == names.end()) throw CLI::ValidationError(name, "no '" + word + "'; " + listed(names));
    *value = at->second;
  };
  return app.add_option_function<std::string>(name, take, help + ": " + listed(names));
}

void add_sizes(CLI::App& app, Options& options) {
  const CLI::AsSizeValue bytes(false);
  const auto* const group = "Sizes (bytes of the whole tensor; K, M, G allowed)";
  app.add_option("-b,--minbytes", options.bytes_min, "First size")
      ->transform(bytes)
      ->capture_default_str()
      ->group(group);
  app.add_option("-e,--maxbytes", options.bytes_max, "Last size")
      ->transform(bytes)
      ->capture_default_str()
      ->group(group);
  auto* factor = app.add_option("-f,--stepfactor", options.step_factor, "Next size: times this")
                     ->check(CLI::Range(std::size_t{2}, std::size_t{1} << 20))
                     ->capture_default_str()
                     ->group(group);
  app.add_option("-i,--stepbytes", options.step_bytes, "Next size: this many bytes more")
      ->transform(bytes)
      ->excludes(factor)
      ->group(group);
}

void add_work(CLI::App& app, Options& options) {
  const auto* const group = "Work";
  app.add_option("-n,--iters", options.iterations, "Timed iterations of each size")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str()
      ->group(group);
  app.add_option("-w,--warmup_iters", options.warmup, "Iterations before them")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str()
      ->group(group);
  app.add_option("-c,--check", options.check, "Check the results (0 or 1)")
      ->capture_default_str()
      ->group(group);
  add_named(app, "-d,--datatype", dtypes, &options.dtype, "Element type")
      ->option_text("TYPE=float32")
      ->group(group);
  add_named(app, "-o,--op", reduce_ops, &options.reduce_op, "Reduction")
      ->option_text("OP=sum")
      ->group(group);
  app.add_option("-r,--root", options.root, "Root of broadcast and reduce")
      ->check(CLI::Range(0, 63))
      ->capture_default_str()
      ->group(group);
  add_named(app, "--memory", memories, &options.cais_memory,
            "Buffers as malloc gives them, or from cais_alloc, which ranks on one machine use in "
            "place")
      ->option_text("any|cais")
      ->group(group);
}

void add_output(CLI::App& app, Options& options) {
  const auto* const group = "Output";
  app.add_option("-J,--json", options.json_file, "Write the results to this file, too")
      ->option_text("FILE")
      ->group(group);
  app.add_flag("--jsonl", options.lines,
               "A line of JSON per size instead of the table, measured as MPI benchmarks are: a "
               "barrier before each iteration, the slowest rank of each, the median")
      ->group(group);
}

void add_ranks(CLI::App& app, Options& options) {
  const auto* const group = "Ranks";
  auto* ranks = app.add_option("--ranks", options.ranks, "Start this many on this machine")
                    ->check(CLI::Range(1, 64))
                    ->capture_default_str()
                    ->group(group);
  auto* world = app.add_option("--world", options.world, "Ranks in all")
                    ->check(CLI::Range(1, 64))
                    ->group(group);
  auto* rendezvous = app.add_option("--rendezvous", options.rendezvous, "Where rank 0 listens")
                         ->option_text("HOST:PORT")
                         ->group(group);
  app.add_option("--rank", options.rank, "Be this rank of --world, and start none")
      ->check(CLI::Range(0, 63))
      ->needs(world)
      ->needs(rendezvous)
      ->excludes(ranks)
      ->group(group);
}

// What the single options cannot see.
std::string complaint(const Options& options) {
  if (options.bytes_max < options.bytes_min) return "-e is less than -b";
  if (options.bytes_min == 0 && options.step_bytes == 0) return "-b 0 needs -i";
  const int ranks = options.is_rank() ? options.world : options.ranks;
  if (options.rank >= ranks) return "--rank must be less than --world";
  if (options.root >= ranks) return "--root must be less than the number of ranks";
  return {};
}

}  // namespace

std::variant<Options, ExitStatus> parse_options(int argc, const char* const* argv,
                                                std::ostream& out, std::ostream& err) {
  Options options;
  CLI::App app(description);
  app.set_version_flag("--version", cais_version());
  add_named(app, "OP", ops, &options.op, "Collective")->required()->option_text("OP");
  add_sizes(app, options);
  add_work(app, options);
  add_output(app, options);
  add_ranks(app, options);
  try {
    app.parse(argc, argv);
    if (const std::string words = complaint(options); !words.empty()) {
      throw CLI::ValidationError(words);
    }
  } catch (const CLI::ParseError& error) {
    return ExitStatus{app.exit(error, out, err)};
  }
  return options;
}

}  // namespace cais::perf
