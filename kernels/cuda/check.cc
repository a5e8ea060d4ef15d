#include "kernels/cuda/check.h"

namespace tutti::cuda {
namespace {

// What the user can do, where more can be said than CUDA says.
const char* advice(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return "free memory of this GPU, or let fewer processes and communicators share it";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      return "this build has no kernels for this GPU: build with its compute capability in CMAKE_CUDA_ARCHITECTURES";
    case cudaErrorDevicesUnavailable:
      return "another process has this GPU for itself: end it, or set the compute mode to default (nvidia-smi -c 0)";
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorAssert:
      return "a kernel of this process failed earlier, and the process cannot use this GPU any more: look for that "
             "kernel with compute-sanitizer";
    case cudaErrorECCUncorrectable:
      return "the memory of this GPU is damaged: see nvidia-smi -q -d ECC";
    case cudaErrorStreamCaptureImplicit:
      return "the legacy default stream cannot be used while a blocking stream captures a CUDA graph: give the call a "
             "stream that captures, or one made with cudaStreamNonBlocking";
    case cudaErrorHostMemoryAlreadyRegistered:
      return "a part of this memory is pinned already: unpin it first, or give memory of its own";
    default:
      return nullptr;
  }
}

}  // namespace

std::string describe(cudaError_t status) {
  const char* todo = advice(status);
  return fmt::format("{} ({}){}{}", cudaGetErrorString(status), cudaGetErrorName(status), todo ? "; " : "",
                     todo ? todo : "");
}

Error errorOf(cudaError_t status, int ordinal, const std::string& attempt) {
  cudaGetLastError();
  if (ordinal < 0) return Error(ErrorCode::kCuda, fmt::format("CUDA: {} failed: {}", attempt, describe(status)));
  return Error(ErrorCode::kCuda, fmt::format("GPU {}: {} failed: {}", ordinal, attempt, describe(status)));
}

}  // namespace tutti::cuda
