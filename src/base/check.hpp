// base/check.hpp — invariants of our own. A check that fails stops the process with the place
// and the condition: going on would compute wrong sums.
#pragma once

namespace cais {

/// Prints `file:line: check failed: condition` to standard error and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition);

}  // namespace cais

/// Always on: for what is cheap beside the work that it guards.
#define CAIS_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::cais::check_failed(__FILE__, __LINE__, #condition))

/// On in builds with CAIS_CHECKS (dev and the sanitizers): for the hot paths.
#ifdef CAIS_CHECKS
#define CAIS_DCHECK(condition) CAIS_CHECK(condition)
#else
#define CAIS_DCHECK(condition) void(0)
#endif
