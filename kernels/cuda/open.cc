#include "kernels/cuda/open.h"

#include <cuda_runtime.h>

#include <map>
#include <mutex>

#include "kernels/cuda/check.h"
#include "process/process_object.h"

namespace tutti::cuda {
namespace {

std::string withoutDriver() {
  int version = 0;
  const bool known = cudaDriverGetVersion(&version) == cudaSuccess && version != 0;
  constexpr int kNeeded = CUDART_VERSION / 1000;
  if (!known) return fmt::format("the CUDA driver is missing (this build needs one for CUDA {} or newer)", kNeeded);
  return fmt::format("the CUDA driver is for CUDA {}.{}, older than this build needs (CUDA {}): update it",
                     version / 1000, version % 1000 / 10, kNeeded);
}

std::string whyNone(cudaError_t status) {
  if (status == cudaErrorInsufficientDriver) return withoutDriver();
  if (status == cudaSuccess || status == cudaErrorNoDevice)
    return "the CUDA driver finds no GPU: see what nvidia-smi shows, and what CUDA_VISIBLE_DEVICES hides";
  return fmt::format("the CUDA driver does not start: {}", describe(status));
}

// The GPUs that were opened. They stay open, as a program that uses CUDA keeps its contexts: other threads may be
// inside of them when the process ends, and so this is never destroyed.
class OpenGpus {
 public:
  static OpenGpus& ofProcess() { return ofThisProcess<OpenGpus>(); }
  std::shared_ptr<device::Device> get(int ordinal) {
    const std::lock_guard lock(mutex_);
    auto& gpu = gpus_[ordinal];
    if (!gpu) gpu = makeGpu(ordinal);
    return gpu;
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::map<int, std::shared_ptr<device::Device>> gpus_;
};

}  // namespace
}  // namespace tutti::cuda

namespace tutti::device {

int deviceCount(std::string& why) noexcept {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  cudaGetLastError();
  try {
    why = cuda::whyNone(status);
  } catch (const std::exception&) {
    setText(why, kNoMemory);
  }
  return 0;
}

std::shared_ptr<Device> openDevice(int ordinal) {
  std::string why;
  const int count = deviceCount(why);
  if (count == 0) throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no GPU {}: {}", ordinal, why));
  if (ordinal < 0 || ordinal >= count)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("there is no GPU {}: this process has {}, numbered from 0", ordinal, count));
  return cuda::OpenGpus::ofProcess().get(ordinal);
}

int currentDevice() noexcept {
  int ordinal = -1;
  if (cudaGetDevice(&ordinal) == cudaSuccess) return ordinal;
  cudaGetLastError();
  return -1;
}

}  // namespace tutti::device
