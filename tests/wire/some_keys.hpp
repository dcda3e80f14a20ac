// tests/wire/some_keys.hpp — keys for tests: one session for each number.
#pragma once

#include "wire/bytes.hpp"
#include "wire/keys.hpp"

namespace cais::wire {

inline Secret secret_number(std::uint64_t number) {
  Secret secret;
  store_network(secret.bytes.data(), number);
  return secret;
}

/// Of all the ranks that a session can have.
inline Keys keys_of(std::uint64_t number, Epoch epoch = Epoch(1), Tags tags = Tags::keyed) {
  return Keys::of_session(tags, secret_number(number), ranks_max, epoch);
}

}  // namespace cais::wire
