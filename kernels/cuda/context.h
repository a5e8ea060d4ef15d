// The calling thread's place in CUDA: on which device its calls work, and what a capture allows it.
//
// Devices are entered by the driver's contexts and not by cudaSetDevice, which could not put back what was before: it
// would replace a context of the user's own, and would make a context on GPU 0 for a thread that had none.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

namespace tutti::cuda {

// A device's primary context, the one that the CUDA runtime uses, alive for as long as this is.
class Context {
 public:
  explicit Context(int ordinal);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();
  int ordinal() const noexcept { return ordinal_; }
  CUcontext get() const noexcept { return context_; }

 private:
  int ordinal_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

// The calling thread is on the device for as long as this lives.
class OnDevice {
 public:
  explicit OnDevice(const Context& context);
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice();

 private:
  CUcontext before_ = nullptr;
  bool changed_ = false;
};

// The calling thread may ask, allocate and wait even while this or another one captures a graph. `ordinal` is for the
// text of an error.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(int ordinal);
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture();

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// For work beside all streams: on the device, and no part of a graph that is captured.
class RelaxedCaptureScope {
 public:
  explicit RelaxedCaptureScope(const Context& context) : device_(context), relaxed_(context.ordinal()) {}

 private:
  OnDevice device_;
  RelaxedCapture relaxed_;
};

}  // namespace tutti::cuda
