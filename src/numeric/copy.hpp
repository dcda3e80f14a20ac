// numeric/copy.hpp — copying past the cache.
#pragma once

#include <cstddef>
#include <cstring>

namespace cais::numeric {

/// Copies like std::memcpy, with non-temporal stores: the target's lines are not read first, and
/// neither fill the cache nor come out of it. For targets that, with what else is in use, outgrow
/// the last-level cache (std::memcpy does the same only in single calls of about that size), or
/// that lie in the cache of another core far away. All is visible to other cores on return.
void copy_stream(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace cais::numeric
