// NVIDIA's management library (NVML). It sees the GPUs of the whole host, whatever CUDA_VISIBLE_DEVICES says. Looked up
// at run time, as the driver is, and without its header, which few machines have.
#pragma once
#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/error.h"

namespace tutti {

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

// Started; ended by the destructor. It stays loaded, for who asks later.
class Nvml {
 public:
  static constexpr int kSuccess = 0;

  // Throws Error(kSystem) where there is none, or where it does not start.
  explicit Nvml(const char* library);
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() { shutdown_(); }

  // Sets `function` to that of this name. Throws Error(kSystem) where this NVML is too old to have it.
  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(symbol(name));
    if (function == nullptr)
      throw Error(ErrorCode::kSystem, fmt::format("NVML has no {}: install a newer driver", name));
  }
  // Throws Error(kSystem), "NVML " and the fault and the status in words, unless the call went well.
  void check(int status, const std::string& fault) const;

 private:
  void* symbol(const char* name) const noexcept;

  std::unique_ptr<void, int (*)(void*)> library_;
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  const char* (*errorString_)(int status) = nullptr;
};

}  // namespace tutti
