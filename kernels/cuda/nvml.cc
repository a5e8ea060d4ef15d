#include "kernels/cuda/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/error.h"

namespace tutti::cuda {
namespace {

using device::GpuLinkType;
using device::Uuid;

// NVML's numbers: of a call that went well; of what two GPUs may share, NVLink; and that they share it.
constexpr int kSuccess = 0, kNvlink = 2, kShared = 0;

class Nvml {
 public:
  // Throws Error(kSystem) where there is none, or where it does not start. It stays loaded, for communicators to come.
  explicit Nvml(const char* library) : library_(::dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE), ::dlclose) {
    if (!library_) throw Error(ErrorCode::kSystem, fmt::format("NVML is missing: {}", ::dlerror()));
    find(init_, "nvmlInit_v2");
    find(shutdown_, "nvmlShutdown");
    find(errorString_, "nvmlErrorString");
    find(gpuByUuid_, "nvmlDeviceGetHandleByUUID");
    find(peerStatus_, "nvmlDeviceGetP2PStatus");
    check(init_(), "does not start");
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() { shutdown_(); }

  GpuLinkType joint(const Uuid& one, const Uuid& other, std::string& why) const try {
    int status = 0;
    check(peerStatus_(gpu(one), gpu(other), kNvlink, &status), "does not tell what joins two GPUs");
    return status == kShared ? GpuLinkType::kNvlink : GpuLinkType::kPcie;
  } catch (const Error& error) {
    why = error.what();
    return GpuLinkType::kUnknown;
  }

 private:
  using Gpu = struct OpaqueGpu*;

  template <class Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library_.get(), name));
    if (function == nullptr)
      throw Error(ErrorCode::kSystem, fmt::format("NVML has no {}: install a newer driver", name));
  }
  void check(int status, const std::string& fault) const {
    if (status == kSuccess) return;
    const char* const text = errorString_(status);
    throw Error(ErrorCode::kSystem,
                fmt::format("NVML {}: {} ({})", fault, text != nullptr ? text : "unknown error", status));
  }
  Gpu gpu(const Uuid& uuid) const {
    Gpu found = nullptr;
    const std::string name = nameOf(uuid);
    check(gpuByUuid_(name.c_str(), &found), "does not know " + name);
    return found;
  }

  std::unique_ptr<void, int (*)(void*)> library_;
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  const char* (*errorString_)(int status) = nullptr;
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
    const Nvml nvml(library);
    for (size_t i = 0; i < others.size(); ++i)
      if (joints[i] == GpuLinkType::kUnknown) joints[i] = nvml.joint(own, others[i], why);
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
