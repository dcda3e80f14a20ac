// torch_cais/csrc/allocator.hpp — PyTorch's CPU allocator with the arena in front: large tensors
// lie in memory that the other ranks of this machine map, and are added in place with no copy.
//
// It is installed once and stays (PyTorch asks for static lifetime: storages point at the allocator
// that made them). What it does not serve goes to the allocator that was there before: all that is
// small, and all while it is switched off, which it is except inside a pool or with
// CAIS_ALLOCATOR=1.
#pragma once

#include <cstddef>

#include "runtime/settings.hpp"

namespace cais::pytorch {

/// Puts the arena in front of PyTorch's CPU allocator. The first call does it, with its settings.
/// Throws DistBackendError when this machine gives no arena.
void install_allocator(const runtime::Settings& settings);

/// Whether every thread's large tensors come from the arena (CAIS_ALLOCATOR=1).
void serve_whole_process(bool on);

/// Opens and closes a pool for the calling thread; pools nest.
void enter_pool();
void leave_pool();

/// Bytes of the arena that are in use by this process; 0 before the allocator is installed.
std::size_t arena_bytes_in_use();
/// Whether the address lies in the arena.
bool in_arena(const void* memory);

}  // namespace cais::pytorch
