// fuzz/arguments.cpp — words on the command line of cais_perf, a line each: either options that
// hang together, or an exit status that is not 0 with a message.
#include <sstream>
#include <vector>

#include "apps/cais_perf/options.hpp"
#include "fuzz/input.hpp"

using namespace cais;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t words_max = 32;
  std::vector<std::string> words{"cais_perf"};
  std::string_view rest = fuzz::as_text(data, size);
  while (!rest.empty() && words.size() < words_max) {
    // The kernel gives no word with a zero in it.
    words.emplace_back(std::string(fuzz::take_until(rest, '\n')).c_str());
  }
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::ostringstream out, err;
  const auto parsed = perf::parse_options(static_cast<int>(argv.size()), argv.data(), out, err);
  if (const auto* exit = std::get_if<perf::ExitStatus>(&parsed)) {
    CAIS_CHECK(exit->value == 0 ? !out.str().empty() : !err.str().empty());
    return 0;
  }
  const auto& options = std::get<perf::Options>(parsed);
  CAIS_CHECK(options.bytes_min <= options.bytes_max);
  CAIS_CHECK(options.step_bytes > 0 || (options.bytes_min > 0 && options.step_factor > 1));
  CAIS_CHECK(options.rank < options.world || !options.is_rank());
  CAIS_CHECK(options.root < (options.is_rank() ? options.world : options.ranks));
  return 0;
}
