#include "base/result.hpp"

namespace cais {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::malformed:
      return "malformed";
    case ErrorCode::mismatch:
      return "mismatch";
    case ErrorCode::rank_lost:
      return "rank_lost";
    case ErrorCode::aborted:
      return "aborted";
    case ErrorCode::timed_out:
      return "timed_out";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::resource_exhausted:
      return "resource_exhausted";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::system:
      return "system";
  }
  return "unknown";
}

}  // namespace cais
