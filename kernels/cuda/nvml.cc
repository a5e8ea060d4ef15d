#include "kernels/cuda/nvml.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "process/nvml.h"

namespace tutti::cuda {
namespace {

using device::GpuLinkType;
using device::Uuid;

// NVML's numbers: of what two GPUs may share, NVLink; and that they share it.
constexpr int kNvlink = 2, kShared = 0;

class Pairs {
 public:
  explicit Pairs(const char* library) : nvml_(library) {
    nvml_.find(gpuByUuid_, "nvmlDeviceGetHandleByUUID");
    nvml_.find(peerStatus_, "nvmlDeviceGetP2PStatus");
  }

  GpuLinkType joint(const Uuid& one, const Uuid& other, std::string& why) const try {
    int status = 0;
    nvml_.check(peerStatus_(gpu(one), gpu(other), kNvlink, &status), "does not tell what joins two GPUs");
    return status == kShared ? GpuLinkType::kNvlink : GpuLinkType::kPcie;
  } catch (const Error& error) {
    why = error.what();
    return GpuLinkType::kUnknown;
  }

 private:
  using Gpu = struct OpaqueGpu*;

  Gpu gpu(const Uuid& uuid) const {
    Gpu found = nullptr;
    const std::string name = nameOf(uuid);
    nvml_.check(gpuByUuid_(name.c_str(), &found), "does not know " + name);
    return found;
  }

  Nvml nvml_;
  int (*gpuByUuid_)(const char* uuid, Gpu* gpu) = nullptr;
  int (*peerStatus_)(Gpu one, Gpu other, int capability, int* status) = nullptr;
};

}  // namespace

std::vector<GpuLinkType> jointsOf(const Uuid& own, std::span<const Uuid> others, std::string& why,
                                  const char* library) {
  std::vector<GpuLinkType> joints;
  for (const Uuid& other : others) joints.push_back(other == own ? GpuLinkType::kSameGpu : GpuLinkType::kUnknown);
  if (std::ranges::count(joints, GpuLinkType::kUnknown) == 0) return joints;
  try {
    const Pairs pairs(library);
    for (size_t i = 0; i < others.size(); ++i)
      if (joints[i] == GpuLinkType::kUnknown) joints[i] = pairs.joint(own, others[i], why);
  } catch (const Error& error) {
    why = error.what();
  }
  return joints;
}

std::string nameOf(const Uuid& uuid) {
  std::string name = "GPU";
  for (size_t i = 0; i < uuid.size(); ++i)
    name += fmt::format("{}{:02x}", i == 0 || (i >= 4 && i <= 10 && i % 2 == 0) ? "-" : "", uuid[i]);
  return name;
}

}  // namespace tutti::cuda
