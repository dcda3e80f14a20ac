#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace cais {

void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace cais
