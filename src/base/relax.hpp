// base/relax.hpp — what a spinning thread does between two looks at a word.
#pragma once

namespace cais {

/// Lets the other hardware thread of the core run, and saves power.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace cais
