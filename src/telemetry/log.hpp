// telemetry/log.hpp — what CAIS says while it runs, in lines like NCCL's:
//
//   host:pid:tid [rank] CAIS INFO SHM 4 ranks, memory mapped by all
//
// CAIS_DEBUG sets the level, CAIS_DEBUG_SUBSYS the subsystems of INFO and TRACE, CAIS_DEBUG_FILE
// where the lines go.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"

namespace cais::telemetry {

/// Each level shows its own lines and those of the levels before it; WARN, the default, shows
/// warnings only.
enum class Level : std::uint8_t { none, version, warn, info, trace };

enum class Subsystem : std::uint8_t {
  init,
  shm,
  udp,
  switching,
  agent,
  runtime,
  torch,
  alloc,
  rpc,
  tune,
};
inline constexpr std::size_t subsystems = 10;

std::string_view to_string(Level level);
std::string_view to_string(Subsystem subsystem);

struct LogConfig {
  Level level = Level::warn;
  std::uint32_t subsystem_mask = ~0u;  // bit i: Subsystem i speaks at INFO and TRACE
  std::string file;                    // empty: standard error; %h host, %p process
};

/// Parses the texts of CAIS_DEBUG ("INFO"; empty: WARN), CAIS_DEBUG_SUBSYS ("INIT,SHM", "ALL",
/// "^UDP": all but UDP; empty: all) and CAIS_DEBUG_FILE. invalid_argument names the wrong word.
Result<LogConfig> parse_log_config(std::string_view level, std::string_view subsystems,
                                   std::string_view file);

/// A handle to where lines go; cheap to copy, to be passed to whoever has something to say.
/// Thread-safe. A Log made by default is silent.
class Log {
 public:
  Log() = default;
  /// Opens the file, for appending. system: it cannot be opened.
  static Result<Log> open(const LogConfig& config);

  /// The same log, whose lines carry "[rank]".
  Log with_rank(int rank) const;

  bool enabled(Level level, Subsystem subsystem) const {
    return level <= level_ &&
           (level <= Level::warn || (subsystem_mask_ >> static_cast<unsigned>(subsystem) & 1) != 0);
  }

  template <typename... Args>
  void warn(Subsystem subsystem, fmt::format_string<Args...> format, Args&&... args) const {
    print(Level::warn, subsystem, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void info(Subsystem subsystem, fmt::format_string<Args...> format, Args&&... args) const {
    print(Level::info, subsystem, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void trace(Subsystem subsystem, fmt::format_string<Args...> format, Args&&... args) const {
    print(Level::trace, subsystem, format, std::forward<Args>(args)...);
  }
  /// The line "CAIS version ...", shown at Level::version and from Level::info on.
  void version(std::string_view version) const;

 private:
  struct Sink;
  template <typename... Args>
  void print(Level level, Subsystem subsystem, fmt::format_string<Args...> format,
             Args&&... args) const {
    if (enabled(level, subsystem)) {
      write(level, subsystem, fmt::format(format, std::forward<Args>(args)...));
    }
  }
  void write(Level level, Subsystem subsystem, std::string_view message) const;

  std::shared_ptr<Sink> sink_;
  Level level_ = Level::none;
  std::uint32_t subsystem_mask_ = 0;
  int rank_ = -1;
};

}  // namespace cais::telemetry
