// base/result.hpp — errors as values: what went wrong, and a sentence that says what to do.
//
// Errors that come from outside (the network, a user, a file) are a Result. A broken invariant of
// our own is a CAIS_CHECK (base/check.hpp).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.hpp"

namespace cais {

enum class ErrorCode : unsigned char {
  invalid_argument,    // the caller asked for what cannot be: wrong shape, dtype, flag
  malformed,           // bytes from outside do not parse
  mismatch,            // ranks called different collectives (P12)
  rank_lost,           // a rank died (P19)
  aborted,             // the group was aborted by its user
  timed_out,           // a time limit ran out
  unsupported,         // right, but not computed here: another path must take it
  resource_exhausted,  // a bound was reached: sessions, slots, memory
  unavailable,         // a peer, switch or device does not answer
  system,              // the operating system refused; the message holds errno's words
};

/// The code's name, as in "rank_lost".
const char* to_string(ErrorCode code);

struct Error {
  ErrorCode code;
  std::string message;  // a sentence: what happened, to whom, and what to do
};

/// A value, or the Error that stands in its place. Ask `ok()` before `value()` or `error()`.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return CAIS_CHECK(ok()), std::get<0>(state_); }
  const T& value() const& { return CAIS_CHECK(ok()), std::get<0>(state_); }
  T&& value() && { return CAIS_CHECK(ok()), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return CAIS_CHECK(!ok()), std::get<1>(state_); }
  Error&& error() && { return CAIS_CHECK(!ok()), std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& { return CAIS_CHECK(!ok()), *error_; }
  Error&& error() && { return CAIS_CHECK(!ok()), std::move(*error_); }

 private:
  std::optional<Error> error_;
};

}  // namespace cais
