// runtime/c_api.cpp — libcais: the C API over communicators. No exception leaves it.
#include <fmt/format.h>

#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "cais/cais.h"
#include "io/shm/arena.hpp"
#include "runtime/communicator.hpp"
#include "runtime/tcp_rendezvous.hpp"
#include "telemetry/log.hpp"

struct cais_comm {
  std::unique_ptr<cais::runtime::Rendezvous> rendezvous;
  std::shared_ptr<cais::runtime::Communicator> communicator;
  std::string transport;
};

namespace cais::runtime {
namespace {

constexpr Duration rendezvous_timeout = std::chrono::minutes(5);

thread_local std::string last_error;

cais_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return CAIS_INVALID_ARGUMENT;
    case ErrorCode::mismatch:
      return CAIS_MISMATCH;
    case ErrorCode::rank_lost:
      return CAIS_RANK_LOST;
    case ErrorCode::aborted:
      return CAIS_ABORTED;
    case ErrorCode::timed_out:
      return CAIS_TIMED_OUT;
    case ErrorCode::unsupported:
      return CAIS_UNSUPPORTED;
    case ErrorCode::resource_exhausted:
      return CAIS_RESOURCE_EXHAUSTED;
    case ErrorCode::unavailable:
    case ErrorCode::malformed:
      return CAIS_UNAVAILABLE;
    case ErrorCode::system:
      break;
  }
  return CAIS_SYSTEM;
}

cais_status failed(const Error& error) {
  last_error = error.message;
  return status_of(error.code);
}

cais_status failed_argument(std::string message) {
  return failed(Error{ErrorCode::invalid_argument, std::move(message)});
}

// Runs `body`, which returns a Result<void>, and turns what went wrong into a status.
template <typename Body>
cais_status guarded(Body body) {
  try {
    const Result<void> result = body();
    return result.ok() ? CAIS_OK : failed(result.error());
  } catch (const std::exception& exception) {
    last_error = exception.what();
    return CAIS_SYSTEM;
  }
}

Result<telemetry::Log> open_log(const Settings& settings) {
  const auto config =
      telemetry::parse_log_config(settings.debug, settings.debug_subsys, settings.debug_file);
  if (!config.ok()) return config.error();
  return telemetry::Log::open(*config);
}

Result<std::unique_ptr<cais_comm>> create(const char* host_port, const char* name, int rank,
                                          int ranks) {
  std::vector<std::string> warnings;
  const Result<Settings> settings = settings_from_environment(&warnings);
  if (!settings.ok()) return settings.error();
  const Result<telemetry::Log> log = open_log(*settings);
  if (!log.ok()) return log.error();
  static std::once_flag told;  // what concerns the process is said once
  std::call_once(told, [&] {
    log->version(cais_version());
    for (const std::string& warning : warnings)
      log->warn(telemetry::Subsystem::init, "{}", warning);
  });
  auto comm = std::make_unique<cais_comm>();
  Result<std::unique_ptr<Rendezvous>> rendezvous =
      make_tcp_rendezvous(host_port, rank == 0, rendezvous_timeout);
  if (!rendezvous.ok()) return rendezvous.error();
  comm->rendezvous = std::move(rendezvous).value();
  GroupConfig config;
  config.name = name;
  config.rank = static_cast<std::uint16_t>(rank);
  config.ranks = static_cast<std::uint16_t>(ranks);
  auto communicator = Communicator::create(*settings, config, *comm->rendezvous);
  if (!communicator.ok()) return communicator.error();
  comm->communicator = std::move(communicator).value();
  comm->transport = comm->communicator->transport_name();
  log->with_rank(rank).info(telemetry::Subsystem::init, "group '{}' of {} ranks over {}", name,
                            ranks, comm->transport);
  return comm;
}

// The enumerator with that number, or nothing; C lets any int be passed.
template <typename Enum>
auto known(int number, std::optional<Enum> (*from)(std::uint8_t)) {
  return number < 0 || number > 255 ? std::optional<Enum>()
                                    : from(static_cast<std::uint8_t>(number));
}

cais_status run(cais_comm* comm, OpKind kind, const void* send, void* recv, std::size_t count,
                int dtype, int op = 0, int root = 0) {
  if (comm == nullptr) return failed_argument("the communicator is NULL");
  const std::optional<DType> type = known(dtype, dtype_from);
  if (!type || is_opaque(*type))
    return failed_argument(fmt::format("no dtype has number {}", dtype));
  const std::optional<ReduceOp> reduce = known(op, reduce_op_from);
  if (!reduce) return failed_argument(fmt::format("no reduce op has number {}", op));
  if (root < 0 || root >= comm->communicator->ranks()) {
    return failed_argument(
        fmt::format("root {} is not in [0, {})", root, comm->communicator->ranks()));
  }
  return guarded([&] {
    Collective collective;
    collective.kind = kind;
    collective.reduce_op = *reduce;
    collective.dtype = *type;
    collective.root = Rank(static_cast<std::uint16_t>(root));
    collective.send = send;
    collective.recv = recv;
    collective.count = count;
    return comm->communicator->run(collective);
  });
}

io::Arena* arena() {
  std::vector<std::string> warnings;
  const Result<Settings> settings = settings_from_environment(&warnings);
  if (!settings.ok()) {
    last_error = settings.error().message;
    return nullptr;
  }
  io::Arena* const made = io::process_arena(settings->arena_bytes_max);
  if (made == nullptr) last_error = "the kernel gives no memory that ranks can share";
  return made;
}

}  // namespace
}  // namespace cais::runtime

using namespace cais::runtime;
using cais::OpKind;

cais_status cais_comm_create(const char* rendezvous, const char* name, int rank, int ranks,
                             cais_comm** comm) {
  if (rendezvous == nullptr || name == nullptr || comm == nullptr) {
    return failed_argument("cais_comm_create takes no NULL");
  }
  if (ranks < 1 || static_cast<std::size_t>(ranks) > cais::ranks_max || rank < 0 || rank >= ranks) {
    return failed_argument(
        fmt::format("rank {} of {} cannot be: a group has 1 to {} ranks, numbered from 0", rank,
                    ranks, cais::ranks_max));
  }
  return guarded([&]() -> cais::Result<void> {
    auto made = create(rendezvous, name, rank, ranks);
    if (!made.ok()) return made.error();
    *comm = std::move(made).value().release();
    return {};
  });
}

cais_status cais_comm_destroy(cais_comm* comm) {
  if (comm == nullptr) return CAIS_OK;
  return guarded([&]() -> cais::Result<void> {
    const std::unique_ptr<cais_comm> owned(comm);
    owned->communicator->shutdown();
    return {};
  });
}

cais_status cais_comm_abort(cais_comm* comm) {
  if (comm == nullptr) return failed_argument("the communicator is NULL");
  return guarded([&]() -> cais::Result<void> {
    comm->communicator->abort("cais_comm_abort was called");
    return {};
  });
}

int cais_comm_rank(const cais_comm* comm) { return comm->communicator->rank(); }
int cais_comm_ranks(const cais_comm* comm) { return comm->communicator->ranks(); }
const char* cais_comm_transport(const cais_comm* comm) { return comm->transport.c_str(); }

cais_status cais_all_reduce(cais_comm* comm, const void* send, void* recv, size_t count,
                            cais_dtype dtype, cais_reduce_op op) {
  return run(comm, OpKind::all_reduce, send, recv, count, dtype, op);
}
cais_status cais_reduce(cais_comm* comm, const void* send, void* recv, size_t count,
                        cais_dtype dtype, cais_reduce_op op, int root) {
  return run(comm, OpKind::reduce, send, recv, count, dtype, op, root);
}
cais_status cais_reduce_scatter(cais_comm* comm, const void* send, void* recv, size_t count,
                                cais_dtype dtype, cais_reduce_op op) {
  return run(comm, OpKind::reduce_scatter, send, recv, count, dtype, op);
}
cais_status cais_all_gather(cais_comm* comm, const void* send, void* recv, size_t count,
                            cais_dtype dtype) {
  return run(comm, OpKind::all_gather, send, recv, count, dtype);
}
cais_status cais_broadcast(cais_comm* comm, void* data, size_t count, cais_dtype dtype, int root) {
  return run(comm, OpKind::broadcast, nullptr, data, count, dtype, 0, root);
}
cais_status cais_all_to_all(cais_comm* comm, const void* send, void* recv, size_t count,
                            cais_dtype dtype) {
  return run(comm, OpKind::all_to_all, send, recv, count, dtype);
}
cais_status cais_gather(cais_comm* comm, const void* send, void* recv, size_t count,
                        cais_dtype dtype, int root) {
  return run(comm, OpKind::gather, send, recv, count, dtype, 0, root);
}
cais_status cais_scatter(cais_comm* comm, const void* send, void* recv, size_t count,
                         cais_dtype dtype, int root) {
  return run(comm, OpKind::scatter, send, recv, count, dtype, 0, root);
}
cais_status cais_barrier(cais_comm* comm) {
  return run(comm, OpKind::barrier, nullptr, nullptr, 0, CAIS_UINT8);
}

void* cais_alloc(size_t bytes) {
  cais::io::Arena* const from = arena();
  void* const memory = from != nullptr ? from->allocate_zeroed(bytes) : nullptr;
  if (from != nullptr && memory == nullptr) {
    last_error = fmt::format(
        "no {} bytes of address space are left for memory that ranks can share; "
        "CAIS_ARENA_MAX_BYTES sets how much there is",
        bytes);
  }
  return memory;
}

void cais_free(void* memory) {
  if (memory != nullptr) cais::io::process_arena()->deallocate(memory);
}

const char* cais_last_error(void) { return last_error.c_str(); }
const char* cais_version(void) { return CAIS_VERSION; }
