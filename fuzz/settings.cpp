// fuzz/settings.cpp — CAIS_* variables, a line each, as they stand in an environment. What is taken
// lies in the range that docs/settings.md gives; what is not is named.
#include "runtime/settings.hpp"

#include <bit>

#include "fuzz/input.hpp"

using namespace cais;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t variables_max = 16;
  std::vector<std::pair<std::string, std::string>> variables;
  std::string_view rest = fuzz::as_text(data, size);
  while (!rest.empty() && variables.size() < variables_max) {
    std::string_view value = fuzz::take_until(rest, '\n');
    const std::string_view name = fuzz::take_until(value, '=');
    variables.emplace_back(name, value);
  }
  std::vector<std::string> warnings;
  const auto settings = runtime::settings_from(variables, &warnings);
  for (const std::string& warning : warnings) CAIS_CHECK(warning.find("CAIS_") != warning.npos);
  if (!settings) {
    CAIS_CHECK(settings.error().code == ErrorCode::invalid_argument);
    CAIS_CHECK(settings.error().message.starts_with("CAIS_"));
    return 0;
  }
  CAIS_CHECK(settings->transport <= runtime::TransportChoice::udp);
  CAIS_CHECK(settings->chunk_bytes >= 65'536 && settings->chunk_bytes % 1'024 == 0);
  CAIS_CHECK(std::has_single_bit(settings->window_fragments));
  CAIS_CHECK(settings->mtu_bytes == 0 || settings->mtu_bytes >= 576);
  CAIS_CHECK(settings->shm_staging_bytes >= 4'096 && settings->shm_staging_bytes % 4'096 == 0);
  CAIS_CHECK(settings->allocator_bytes_min >= 4'096);
  return 0;
}
