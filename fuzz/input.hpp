// fuzz/input.hpp — what all fuzz targets need of a fuzzer's input, and the word of their
// properties.
//
// A property that does not hold ends the process by CAIS_CHECK, as libFuzzer wants it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/check.hpp"

/// The entry point that libFuzzer calls with each input.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace cais::fuzz {

inline std::span<const std::byte> as_bytes(const std::uint8_t* data, std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Takes the text up to `separator` off the front of `rest`.
inline std::string_view take_until(std::string_view& rest, char separator) {
  const std::string_view taken = rest.substr(0, rest.find(separator));
  rest.remove_prefix(taken.size() == rest.size() ? taken.size() : taken.size() + 1);
  return taken;
}

}  // namespace cais::fuzz
