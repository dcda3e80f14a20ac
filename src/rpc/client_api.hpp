// rpc/client_api.hpp — the C interface of libcais_rpc.so, a rank's side of the management
// interface.
//
// libtorch exports an old protobuf of its own. So what speaks gRPC is a library by itself, opened
// with RTLD_LOCAL | RTLD_DEEPBIND, and nothing but this struct of functions crosses between.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

struct CaisRpcClient;

struct CaisRpcJoin {
  const char* group;
  const char* name;
  const char* udp_address;
  uint32_t rank, ranks;
  uint32_t tags;  // cais::wire::Tags
  uint32_t fragment_bytes, window_fragments;
};

enum CaisRpcEventKind : uint32_t {
  CAIS_RPC_JOINED = 1,      // session, epoch, lanes, lane_ports, window_fragments, secrets
  CAIS_RPC_DESCRIBED = 2,   // hash
  CAIS_RPC_MISMATCHED = 3,  // first, second, first_descriptor, second_descriptor (128 bytes)
  CAIS_RPC_LEFT = 4,        // first, ops
  CAIS_RPC_ENDED = 5,       // code, message; the last event
};

/// Pointers are valid during the callback only.
struct CaisRpcEvent {
  uint32_t kind;
  uint32_t session, epoch, lanes, window_fragments;
  const uint16_t* lane_ports;
  const unsigned char* own_secret;    // 32 bytes
  const unsigned char* group_secret;  // 32 bytes
  uint64_t hash, ops;
  uint32_t first, second;
  const unsigned char* first_descriptor;
  const unsigned char* second_descriptor;
  uint32_t code;  // cais::ErrorCode
  const char* message;
};

/// Called by a thread of the library, one call at a time.
typedef void (*CaisRpcCallback)(void* context, const CaisRpcEvent* event);

struct CaisRpcApi {
  uint32_t version;  // cais_rpc_api_version
  /// Begins to join; events tell how it goes. Never fails at once.
  CaisRpcClient* (*join)(const char* switch_address, const CaisRpcJoin* join,
                         CaisRpcCallback callback, void* context);
  /// `shown` is what a mismatch shows in the descriptor's place; both have 128 bytes.
  void (*describe)(CaisRpcClient* client, const unsigned char* descriptor,
                   const unsigned char* shown, uint64_t hash);
  void (*leave)(CaisRpcClient* client, uint64_t ops);
  void (*abort)(CaisRpcClient* client, uint32_t code, const char* reason);
  /// Ends the stream; no callback runs after its return.
  void (*destroy)(CaisRpcClient* client);
};

inline constexpr uint32_t cais_rpc_api_version = 3;

/// The name of the one symbol that the library exports, and its type.
inline constexpr char cais_rpc_api_symbol[] = "cais_rpc_api";
typedef const CaisRpcApi* (*CaisRpcApiFunction)();
}
