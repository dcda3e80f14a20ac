// wire/bytes.hpp — integers in network byte order, or little-endian, at any address.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>

namespace cais::wire {

/// The bytes of `value` in the other order.
template <std::unsigned_integral T>
constexpr T swap_bytes(T value) {
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  return value;
}

template <std::unsigned_integral T>
constexpr T to_network(T value) {
  return std::endian::native == std::endian::big ? value : swap_bytes(value);
}

template <std::unsigned_integral T>
T load_little(const std::byte* at) {
  T little;
  std::memcpy(&little, at, sizeof(T));
  return std::endian::native == std::endian::little ? little : swap_bytes(little);
}

template <std::unsigned_integral T>
void store_little(std::byte* at, T value) {
  const T little = std::endian::native == std::endian::little ? value : swap_bytes(value);
  std::memcpy(at, &little, sizeof(T));
}

template <std::unsigned_integral T>
void store_network(std::byte* at, T value) {
  const T network = to_network(value);
  std::memcpy(at, &network, sizeof(T));
}

template <std::unsigned_integral T>
T load_network(const std::byte* at) {
  T network;
  std::memcpy(&network, at, sizeof(T));
  return to_network(network);
}

}  // namespace cais::wire
