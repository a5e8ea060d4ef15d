// Python's lock, which the calling thread may hold: whoever waits for other threads lets it go, as they may want it.
#pragma once
#include <torch/csrc/utils/pybind.h>

#include <optional>

namespace tutti_torch {

class WithoutGil {
 public:
  WithoutGil() {
    if (Py_IsInitialized() && PyGILState_Check()) released_.emplace();
  }

 private:
  std::optional<pybind11::gil_scoped_release> released_;
};

}  // namespace tutti_torch
