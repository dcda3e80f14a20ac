// fuzz/log_config.cpp — CAIS_DEBUG, CAIS_DEBUG_SUBSYS and CAIS_DEBUG_FILE, a line each.
#include "fuzz/input.hpp"
#include "telemetry/log.hpp"

using namespace cais;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = fuzz::as_text(data, size);
  const std::string_view level = fuzz::take_until(rest, '\n');
  const std::string_view subsystems = fuzz::take_until(rest, '\n');
  const auto config = telemetry::parse_log_config(level, subsystems, rest);
  if (!config) {
    CAIS_CHECK(config.error().code == ErrorCode::invalid_argument);
    return 0;
  }
  CAIS_CHECK(config->file == rest);
  CAIS_CHECK(!telemetry::to_string(config->level).empty());
  return 0;
}
