// fuzz/addresses.cpp — any text as an address: what parses says itself in a form that parses to the
// same.
#include "fuzz/input.hpp"
#include "io/address.hpp"

using namespace cais;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint16_t default_port = 4242;
  const auto address = io::Address::parse(fuzz::as_text(data, size), default_port);
  if (!address) {
    CAIS_CHECK(address.error().code == ErrorCode::invalid_argument);
    return 0;
  }
  const auto again = io::Address::parse(address->to_string());
  CAIS_CHECK(again.ok() && *again == *address && again->hash() == address->hash());
  CAIS_CHECK(io::Address::from(address->raw()) == *address || address->family() == AF_INET6);
  CAIS_CHECK(address->with_port(7).port() == 7);
  (void)address->is_any();
  return 0;
}
