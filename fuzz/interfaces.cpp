// fuzz/interfaces.cpp — a list of interfaces in NCCL's syntax, then interfaces of a host, a line
// each. What is chosen is one of them, and one that the list allows.
#include "io/interfaces.hpp"

#include <algorithm>

#include "fuzz/input.hpp"

using namespace cais;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t interfaces_max = 16;
  std::string_view rest = fuzz::as_text(data, size);
  const std::string_view text = fuzz::take_until(rest, '\n');
  std::vector<io::Interface> interfaces;
  while (!rest.empty() && interfaces.size() < interfaces_max) {
    const std::string_view line = fuzz::take_until(rest, '\n');
    interfaces.push_back({.name = std::string(line),
                          .address = "192.0.2." + std::to_string(interfaces.size()),
                          .ipv6 = line.size() % 3 == 2,
                          .loopback = line == "lo"});
  }
  const auto pattern = io::parse_interface_pattern(text);
  const auto chosen = io::choose_interface(text, interfaces);
  if (!pattern) CAIS_CHECK(!chosen && chosen.error().code == pattern.error().code);
  if (!chosen) {
    CAIS_CHECK(!chosen.error().message.empty());
    return 0;
  }
  CAIS_CHECK(std::ranges::find(interfaces, *chosen) != interfaces.end());
  const bool named = pattern->place_of(chosen->name) < pattern->names.size();
  if (!pattern->names.empty()) CAIS_CHECK(named != pattern->exclude);
  return 0;
}
