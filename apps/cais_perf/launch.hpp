// cais_perf/launch.hpp — starts the ranks of a run on this machine, and ends them all whatever
// happens.
#pragma once

namespace cais::perf {

/// A rank's exit status after a run to the end in which data was wrong.
inline constexpr int exit_wrong_data = 3;

/// Runs this program `ranks` times, with the same words and those that make it a rank. When one
/// fails, or this process gets SIGINT or SIGTERM, the others are ended. Returns the exit status: 0
/// when every rank's was.
int launch_ranks(int ranks, int argc, char** argv);

}  // namespace cais::perf
