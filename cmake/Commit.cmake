# Writes OUTPUT, the source of sim/commit.hpp, for the checkout at SOURCE. A file that says the same
# already is left alone, so that nothing is built again.
execute_process(
  COMMAND git describe --always --dirty --abbrev=12 --exclude=*
  WORKING_DIRECTORY "${SOURCE}"
  OUTPUT_VARIABLE commit
  OUTPUT_STRIP_TRAILING_WHITESPACE
  ERROR_QUIET
  RESULT_VARIABLE failed)
if(failed)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT [[
#include "sim/commit.hpp"

namespace cais::sim {

const char* commit() { return "@commit@"; }

}  // namespace cais::sim
]] @ONLY)
