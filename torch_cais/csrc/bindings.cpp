// torch_cais/csrc/bindings.cpp — the Python module torch_cais._C.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "allocator.hpp"
#include "backend.hpp"
#include "errors.hpp"
#include "store_rendezvous.hpp"

namespace cais::pytorch {
namespace {

namespace py = pybind11;

runtime::Settings settings_here() {
  auto settings = runtime::settings_from_environment(nullptr);
  if (!settings) throw_error("settings", settings.error());
  return *std::move(settings);
}

struct Group {
  c10::intrusive_ptr<c10d::Backend> backend;
  std::shared_ptr<GroupStats> stats;
};

Group create_group(const c10::intrusive_ptr<c10d::Store>& store, const std::string& name, int rank,
                   int ranks, std::chrono::milliseconds timeout,
                   const c10::intrusive_ptr<c10d::Backend>& gloo,
                   const c10::intrusive_ptr<c10d::Backend>& nccl) {
  const py::gil_scoped_release no_gil;
  const std::string where = c10::str("group '", name, "', rank ", rank, " of ", ranks);
  const runtime::Settings settings = settings_here();
  StoreRendezvous rendezvous(store);
  auto communicator = runtime::Communicator::create(settings,
                                                    {.name = name,
                                                     .rank = static_cast<std::uint16_t>(rank),
                                                     .ranks = static_cast<std::uint16_t>(ranks),
                                                     .timeout = timeout},
                                                    rendezvous);
  if (!communicator) throw_error(where, communicator.error());
  auto stats = std::make_shared<GroupStats>(
      GroupIdentity{name, rank, ranks, std::string((*communicator)->transport_name())});
  auto backend = c10::make_intrusive<CaisBackend>(*std::move(communicator), gloo, nccl, stats, rank,
                                                  ranks, timeout);
  return {std::move(backend), std::move(stats)};
}

py::list rows_of(const GroupStats& stats) {
  py::list rows;
  for (const GroupStats::Row& row : stats.rows()) {
    rows.append(py::make_tuple(to_string(row.op), to_string(row.route.path),
                               to_string(row.route.reason), row.calls, row.bytes));
  }
  return rows;
}

std::vector<std::string> environment_warnings() {
  std::vector<std::string> warnings;
  const auto settings = runtime::settings_from_environment(&warnings);
  if (!settings) warnings.push_back(settings.error().message);
  return warnings;
}

}  // namespace
}  // namespace cais::pytorch

PYBIND11_MODULE(_C, module) {
  using namespace cais::pytorch;
  module.doc() = "The C++ side of torch_cais; use torch_cais.";

  py::class_<GroupStats, std::shared_ptr<GroupStats>>(module, "GroupStats")
      .def_property_readonly("rank", [](const GroupStats& s) { return s.identity.rank; })
      .def_property_readonly("ranks", [](const GroupStats& s) { return s.identity.ranks; })
      .def_property_readonly("transport", [](const GroupStats& s) { return s.identity.transport; })
      .def("rows", &rows_of, "[(op, path, reason, calls, bytes)], one for each way taken")
      .def("reset", &GroupStats::reset);

  module.def(
      "create_group",
      [](const c10::intrusive_ptr<c10d::Store>& store, const std::string& name, int rank, int ranks,
         std::chrono::milliseconds timeout, const c10::intrusive_ptr<c10d::Backend>& gloo,
         const c10::intrusive_ptr<c10d::Backend>& nccl) {
        Group group = create_group(store, name, rank, ranks, timeout, gloo, nccl);
        return py::make_tuple(std::move(group.backend), std::move(group.stats));
      },
      py::arg("store"), py::arg("name"), py::arg("rank"), py::arg("ranks"), py::arg("timeout"),
      py::arg("gloo"), py::arg("nccl") = nullptr,
      "Collective: (backend, stats) of a new group. Blocks until all its ranks are there.");

  module.def(
      "install_allocator",
      [](bool whole_process) {
        install_allocator(settings_here());
        if (whole_process) serve_whole_process(true);
      },
      py::arg("whole_process"),
      "Puts the arena in front of PyTorch's CPU allocator, for pools or for the whole process.");
  module.def("enter_pool", &enter_pool);
  module.def("leave_pool", &leave_pool);
  module.def("arena_bytes_in_use", &arena_bytes_in_use);
  module.def(
      "in_arena", [](const at::Tensor& tensor) { return in_arena(tensor.const_data_ptr()); },
      py::arg("tensor"));

  module.def("environment_warnings", &environment_warnings,
             "What is odd about the CAIS_* variables, a sentence each.");
}
