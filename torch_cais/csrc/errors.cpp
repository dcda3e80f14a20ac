#include "errors.hpp"

#include <c10/util/Exception.h>

namespace cais::pytorch {

void throw_error(const std::string& where, const Error& error) {
  // Programs recognise a timeout of Gloo by these two words.
  const char* kind = error.code == ErrorCode::timed_out ? "Timed out : " : "";
  TORCH_CHECK_WITH(DistBackendError, false, "CAIS: ", where, ": ", kind, error.message);
}

std::exception_ptr exception_from(const std::string& where, const Error& error) {
  try {
    throw_error(where, error);
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace cais::pytorch
