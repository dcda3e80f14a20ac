// telemetry/log.cpp — parses the log's settings and writes its lines through spdlog.
#include "telemetry/log.hpp"

#include <spdlog/details/null_mutex.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <climits>

namespace cais::telemetry {
namespace {

constexpr std::array<std::string_view, 5> level_names{"NONE", "VERSION", "WARN", "INFO", "TRACE"};
constexpr std::array<std::string_view, subsystems> subsystem_names{
    "INIT", "SHM", "UDP", "SWITCH", "AGENT", "RUNTIME", "TORCH", "ALLOC", "RPC", "TUNE"};

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  const std::string_view full(name.data());
  return std::string(full.substr(0, full.find('.')));
}

template <std::size_t N>
std::string joined(const std::array<std::string_view, N>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<std::uint32_t> parse_subsystems(std::string_view text) {
  const bool exclude = text.starts_with('^');
  if (exclude) text.remove_prefix(1);
  std::uint32_t mask = 0;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string word = upper(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (word == "ALL") {
      mask = ~0u;
      continue;
    }
    const auto* at = std::find(subsystem_names.begin(), subsystem_names.end(), word);
    if (at == subsystem_names.end()) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("CAIS_DEBUG_SUBSYS: no subsystem '{}'; there are ALL, {}", word,
                               joined(subsystem_names))};
    }
    mask |= 1u << (at - subsystem_names.begin());
  }
  return exclude ? ~mask : mask;
}

std::string expand(std::string_view file) {
  std::string result;
  for (std::size_t i = 0; i < file.size(); ++i) {
    const char next = file[i] == '%' && i + 1 < file.size() ? file[i + 1] : '\0';
    if (next == 'h') {
      result += host_name();
    } else if (next == 'p') {
      result += std::to_string(getpid());
    } else if (next == '%') {
      result += '%';
    } else {
      result += file[i];
      continue;
    }
    ++i;
  }
  return result;
}

}  // namespace

std::string_view to_string(Level level) { return level_names[static_cast<std::size_t>(level)]; }
std::string_view to_string(Subsystem subsystem) {
  return subsystem_names[static_cast<std::size_t>(subsystem)];
}

Result<LogConfig> parse_log_config(std::string_view level, std::string_view subsystem_list,
                                   std::string_view file) {
  LogConfig config;
  if (!level.empty()) {
    const auto* at = std::find(level_names.begin(), level_names.end(), upper(level));
    if (at == level_names.end()) {
      return Error{
          ErrorCode::invalid_argument,
          fmt::format("CAIS_DEBUG: no level '{}'; there are {}", level, joined(level_names))};
    }
    config.level = static_cast<Level>(at - level_names.begin());
  }
  if (!subsystem_list.empty()) {
    Result<std::uint32_t> mask = parse_subsystems(subsystem_list);
    if (!mask.ok()) return mask.error();
    config.subsystem_mask = *mask;
  }
  config.file = file;
  return config;
}

struct Log::Sink {
  std::string host = host_name();
  std::shared_ptr<spdlog::sinks::sink> lines;
};

Result<Log> Log::open(const LogConfig& config) {
  auto sink = std::make_shared<Sink>();
  if (config.file.empty()) {
    sink->lines = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  } else {
    try {
      sink->lines = std::make_shared<spdlog::sinks::basic_file_sink_mt>(expand(config.file));
    } catch (const spdlog::spdlog_ex& failure) {
      return Error{ErrorCode::system,
                   fmt::format("CAIS_DEBUG_FILE '{}': {}", config.file, failure.what())};
    }
  }
  sink->lines->set_pattern("%v");
  Log log;
  log.sink_ = std::move(sink);
  log.level_ = config.level;
  log.subsystem_mask_ = config.subsystem_mask;
  return log;
}

Log Log::with_rank(int rank) const {
  Log log = *this;
  log.rank_ = rank;
  return log;
}

void Log::version(std::string_view version) const {
  if (level_ == Level::version || level_ >= Level::info) {
    write(Level::version, Subsystem::init, fmt::format("CAIS version {}", version));
  }
}

void Log::write(Level level, Subsystem subsystem, std::string_view message) const {
  const std::string rank = rank_ >= 0 ? fmt::format("[{}] ", rank_) : std::string();
  const std::string line = fmt::format("{}:{}:{} {}CAIS {} {} {}", sink_->host, getpid(), gettid(),
                                       rank, to_string(level), to_string(subsystem), message);
  sink_->lines->log(spdlog::details::log_msg("", spdlog::level::info, line));
  sink_->lines->flush();
}

}  // namespace cais::telemetry
