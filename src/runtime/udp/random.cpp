#include "runtime/udp/random.hpp"

#include <sys/random.h>

#include "base/check.hpp"

namespace cais::runtime {

std::uint64_t random_word() {
  std::uint64_t word = 0;
  CAIS_CHECK(::getrandom(&word, sizeof(word), 0) == sizeof(word));
  return word;
}

wire::Secret random_secret() {
  wire::Secret secret;
  auto& bytes = secret.bytes;  // less than 256 come in one piece
  CAIS_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return secret;
}

}  // namespace cais::runtime
