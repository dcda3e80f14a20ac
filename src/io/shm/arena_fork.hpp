// io/shm/arena_fork.hpp — which arenas take part in the forks of this process.
#pragma once

namespace cais::io {

class Arena;

/// From now on a child process gets a private view of the arena, until `unfollow_forks`.
void follow_forks(Arena& arena);
void unfollow_forks(Arena& arena);

}  // namespace cais::io
