// The extension module tutti_torch._C: how Python makes a Backend.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "backend.h"

namespace tutti_torch {
namespace {

c10::intrusive_ptr<c10d::Backend> create(const c10d::DistributedBackendOptions& options, const pybind11::object&) {
  const auto timeout = std::chrono::duration_cast<milliseconds>(options.timeout);
  const pybind11::gil_scoped_release released;
  const auto backend =
      c10::make_intrusive<Backend>(options.store, options.group_rank, options.group_size, timeout, options.group_id);
  Groups::ofThisProcess().add(backend);
  return backend;
}

// Name, description and numbers of each group.
std::vector<std::tuple<std::string, std::string, Numbers>> groups() {
  const pybind11::gil_scoped_release
      released;  // a group that is leaving may hold what is locked here, and want the GIL
  std::vector<std::tuple<std::string, std::string, Numbers>> all;
  for (GroupNumbers& one : Groups::ofThisProcess().read())
    all.emplace_back(std::move(one.name), std::move(one.description), std::move(one.numbers));
  return all;
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.doc() = "The backend of torch.distributed over tutti. Use it through torch.distributed.";
  module.def("create", &create, pybind11::arg("options"), pybind11::arg("backend_options"));
  module.def("groups", &groups);
  module.def(
      "end", [] { Groups::ofThisProcess().endAll(); }, pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("version", [] {
    int version = 0;
    tuttiGetVersion(&version);
    return version;
  });
}

}  // namespace tutti_torch
