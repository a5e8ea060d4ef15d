// The extension module tutti_torch._C: how Python makes a Backend.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "backend.h"

namespace tutti_torch {
namespace {

c10::intrusive_ptr<c10d::Backend> create(const c10d::DistributedBackendOptions& options, const pybind11::object&) {
  const auto timeout = std::chrono::duration_cast<milliseconds>(options.timeout);
  const pybind11::gil_scoped_release released;
  return c10::make_intrusive<Backend>(options.store, options.group_rank, options.group_size, timeout, options.group_id);
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.doc() = "The backend of torch.distributed over tutti. Use it through torch.distributed.";
  module.def("create", &create, pybind11::arg("options"), pybind11::arg("backend_options"));
  module.def("version", [] {
    int version = 0;
    tuttiGetVersion(&version);
    return version;
  });
}

}  // namespace tutti_torch
