// What the files of the port to CUDA share.
#pragma once
#include <cuda_runtime.h>

namespace tutti::perf::device {

// Throws Failure unless `result` is cudaSuccess. `what` is what was tried: "making a stream".
void check(cudaError_t result, int device, const char* what);
void use(int device);

}  // namespace tutti::perf::device
