// runtime/settings.hpp — every setting of CAIS, once: name, default, unit, range and meaning.
// docs/settings.md is generated from the table in settings.cpp; a test holds them together.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "wire/keys.hpp"

namespace cais::runtime {

enum class TransportChoice : std::uint8_t { automatic, shm, udp };

/// Names, units and ranges: see the table in settings.cpp, one row per member, in this order.
struct Settings {
  TransportChoice transport = TransportChoice::automatic;
  std::string socket_ifname;
  std::string switch_ip;
  std::uint32_t chunk_bytes = 262'144;   // E8
  std::uint32_t window_fragments = 512;  // W of each lane (P1)
  wire::Tags packet_tags = wire::Tags::keyed;
  std::uint32_t mtu_bytes = 0;
  bool udp_gso = true;
  std::uint32_t shm_staging_bytes = 524'288;
  std::uint32_t spin_us = 50;
  bool allocator = false;
  std::uint64_t allocator_bytes_min = 65'536;
  std::uint64_t arena_bytes_max = 0;
  std::string debug = "WARN";
  std::string debug_subsys;
  std::string debug_file;
};

/// Reads the CAIS_* variables. The error names the variable, its value and what is allowed.
/// `warnings` gets a line for each unknown CAIS_ variable, with the nearest right name;
/// it may be null.
Result<Settings> settings_from_environment(std::vector<std::string>* warnings);

/// The same from (name, value) pairs; names that do not begin with CAIS_ are let pass.
Result<Settings> settings_from(std::span<const std::pair<std::string, std::string>> variables,
                               std::vector<std::string>* warnings);

/// The page docs/settings.md.
std::string settings_page();

}  // namespace cais::runtime
