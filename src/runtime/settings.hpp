// runtime/settings.hpp — every setting of CAIS, once: name, default, unit, range and meaning.
// docs/settings.md is generated from the table in settings.cpp; a test holds them together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace cais::runtime {

enum class TransportChoice : std::uint8_t { automatic, shm, udp };

struct Settings {
  TransportChoice transport = TransportChoice::automatic;  // CAIS_TRANSPORT=auto|shm|udp
  std::string socket_ifname;     // CAIS_SOCKET_IFNAME, NCCL's syntax; alias CAIS_NIC_IFACE
  std::string switch_ip;         // CAIS_SWITCH_IP=ADDRESS[:PORT] of a cais-switch; empty: embedded
  std::uint32_t chunk_bytes = 262'144;       // CAIS_CHUNK_BYTES [65536, 1048576] (E8)
  std::uint32_t window_fragments = 512;      // CAIS_WINDOW: W of each lane, a power of two (P1)
  std::uint32_t mtu_bytes = 0;               // CAIS_MTU: 0: ask the path
  bool udp_gso = true;                       // CAIS_UDP_GSO=0|1
  std::uint32_t shm_staging_bytes = 524'288; // CAIS_SHM_STAGING_BYTES: per rank and buffer
  std::uint32_t spin_us = 50;                // CAIS_SPIN_US: spinning before a wait sleeps
  bool allocator = false;                    // CAIS_ALLOCATOR=1: large CPU tensors from CAIS memory
  std::uint64_t allocator_bytes_min = 65'536;    // CAIS_ALLOCATOR_MIN_BYTES
  std::uint64_t arena_bytes_max = 0;         // CAIS_ARENA_MAX_BYTES; 0: the machine's memory
  std::string tensor_layout;                 // CAIS_TENSOR_LAYOUT (E5)
  std::string debug;                         // CAIS_DEBUG=WARN|INFO|TRACE
  std::string debug_subsys;                  // CAIS_DEBUG_SUBSYS, NCCL's syntax (^ excludes)
  std::string debug_file;                    // CAIS_DEBUG_FILE, %h host, %p process
};

/// Reads the CAIS_* variables. The error names the variable, its value and what is allowed.
/// `warnings` gets a line for each unknown CAIS_ variable, with the nearest right name.
Result<Settings> settings_from_environment(std::vector<std::string>* warnings);

/// The page docs/settings.md.
std::string settings_page();

}  // namespace cais::runtime
