#include "runtime/udp/random.hpp"

#include <sys/random.h>

#include "base/check.hpp"

namespace cais::runtime {

std::uint64_t random_word() {
  std::uint64_t word = 0;
  CAIS_CHECK(::getrandom(&word, sizeof(word), 0) == sizeof(word));
  return word;
}

}  // namespace cais::runtime
