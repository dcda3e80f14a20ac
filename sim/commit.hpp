// sim/commit.hpp — which code it is that has failed.
#pragma once

namespace cais::sim {

/// The commit that was built, with "-dirty" behind it where files had been changed; "unknown"
/// outside a checkout.
const char* commit();

}  // namespace cais::sim
