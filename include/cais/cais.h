/* cais.h — the C API of CAIS: collectives computed in the switch.
 *
 * Every function returns CAIS_OK or an error code; cais_last_error() gives the sentence that goes
 * with the last error of the calling thread. Collectives block until the result is there. All
 * ranks of a communicator call the same collectives in the same order; a communicator may be used
 * by several threads, one call at a time in an order that all ranks share.
 */
#ifndef CAIS_CAIS_H
#define CAIS_CAIS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAIS_API __attribute__((visibility("default")))

typedef enum {
  CAIS_OK = 0,
  CAIS_INVALID_ARGUMENT = 1,
  CAIS_MISMATCH = 2,  /* ranks called different collectives */
  CAIS_RANK_LOST = 3, /* a rank died */
  CAIS_ABORTED = 4,
  CAIS_TIMED_OUT = 5,
  CAIS_UNSUPPORTED = 6,
  CAIS_RESOURCE_EXHAUSTED = 7,
  CAIS_UNAVAILABLE = 8,
  CAIS_SYSTEM = 9
} cais_status;

typedef enum {
  CAIS_FLOAT32 = 1,
  CAIS_FLOAT64 = 2,
  CAIS_FLOAT16 = 3,
  CAIS_BFLOAT16 = 4,
  CAIS_INT8 = 5,
  CAIS_UINT8 = 6,
  CAIS_INT32 = 7,
  CAIS_INT64 = 8
} cais_dtype;

typedef enum {
  CAIS_SUM = 1,
  CAIS_AVG = 2,
  CAIS_MIN = 3,
  CAIS_MAX = 4,
  CAIS_PRODUCT = 5
} cais_reduce_op;

typedef struct cais_comm cais_comm;

/* Collective. `rendezvous` is HOST:PORT; rank 0 listens there. `name` tells communicators that
 * share a rendezvous apart. Settings come from the CAIS_* environment (docs/settings.md). */
CAIS_API cais_status cais_comm_create(const char* rendezvous, const char* name, int rank, int ranks,
                                      cais_comm** comm);
CAIS_API cais_status cais_comm_destroy(cais_comm* comm);
CAIS_API cais_status cais_comm_abort(cais_comm* comm);
CAIS_API int cais_comm_rank(const cais_comm* comm);
CAIS_API int cais_comm_ranks(const cais_comm* comm);
CAIS_API const char* cais_comm_transport(const cais_comm* comm);

/* `count` is in elements of one unit: the whole tensor of an all-reduce, reduce or broadcast; one
 * rank's shard of the others. `send` may be `recv` where the unit of this rank lies there. */
CAIS_API cais_status cais_all_reduce(cais_comm* comm, const void* send, void* recv, size_t count,
                                     cais_dtype dtype, cais_reduce_op op);
CAIS_API cais_status cais_reduce(cais_comm* comm, const void* send, void* recv, size_t count,
                                 cais_dtype dtype, cais_reduce_op op, int root);
CAIS_API cais_status cais_reduce_scatter(cais_comm* comm, const void* send, void* recv,
                                         size_t count, cais_dtype dtype, cais_reduce_op op);
CAIS_API cais_status cais_all_gather(cais_comm* comm, const void* send, void* recv, size_t count,
                                     cais_dtype dtype);
CAIS_API cais_status cais_broadcast(cais_comm* comm, void* data, size_t count, cais_dtype dtype,
                                    int root);
CAIS_API cais_status cais_all_to_all(cais_comm* comm, const void* send, void* recv, size_t count,
                                     cais_dtype dtype);
CAIS_API cais_status cais_gather(cais_comm* comm, const void* send, void* recv, size_t count,
                                 cais_dtype dtype, int root);
CAIS_API cais_status cais_scatter(cais_comm* comm, const void* send, void* recv, size_t count,
                                  cais_dtype dtype, int root);
CAIS_API cais_status cais_barrier(cais_comm* comm);

/* Memory that ranks on this machine add in place, with no copy. Aligned to 4096 bytes, zeroed.
 * NULL when the memory is used up. */
CAIS_API void* cais_alloc(size_t bytes);
CAIS_API void cais_free(void* memory);

CAIS_API const char* cais_last_error(void);
CAIS_API const char* cais_version(void);

#ifdef __cplusplus
}
#endif
#endif
