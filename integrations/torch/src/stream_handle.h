// A stream of PyTorch's as CUDA knows it.
#pragma once
#include <c10/core/StreamGuard.h>
#include <torch/csrc/utils/pybind.h>
#include <tutti/tutti.h>

namespace tutti_torch {

// What PyTorch before 2.12 tells of the current stream, without its headers for CUDA, which need CUDA's.
inline void* handleOfCurrentStream(c10::DeviceIndex device) {
  const pybind11::gil_scoped_acquire python;
  const auto torch = pybind11::module_::import("torch._C");
  return reinterpret_cast<void*>(torch.attr("_cuda_getCurrentRawStream")(static_cast<int>(device)).cast<uintptr_t>());
}

template <class Stream>
tuttiStream_t handleOf(const Stream& stream) {
  if constexpr (requires { stream.native_handle(); }) return static_cast<tuttiStream_t>(stream.native_handle());
  const c10::StreamGuard current(stream);
  return static_cast<tuttiStream_t>(handleOfCurrentStream(stream.device_index()));
}

}  // namespace tutti_torch
