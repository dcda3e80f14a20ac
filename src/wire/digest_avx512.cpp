// XXH3-64 as the compiler makes it when it may use AVX512. Nothing else belongs here: an inline
// function compiled with these flags could be linked into code for any processor.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "wire/digest.hpp"

namespace cais::wire::kernel {

std::uint64_t digest_avx512(const std::byte* data, std::size_t bytes) {
  return XXH3_64bits(data, bytes);
}

}  // namespace cais::wire::kernel
