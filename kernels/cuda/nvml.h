// What joins two GPUs, by NVIDIA's management library, which sees those of other processes of the host too.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "process/nvml.h"

namespace tutti::cuda {

// What joins the GPU `own` to each of the others. Unknown, and `why`, for all other GPUs where NVML is missing or does
// not start, and for those that it does not know: of other containers and other hosts, and parts of a GPU (MIG), which
// have names of their own. It is not loaded for one GPU alone.
std::vector<device::GpuLinkType> jointsOf(const device::Uuid& own, std::span<const device::Uuid> others,
                                          std::string& why, const char* library = kNvmlLibrary);

// "GPU-01234567-89ab-…", as NVML and nvidia-smi call a GPU.
std::string nameOf(const device::Uuid& uuid);

}  // namespace tutti::cuda
