#include "process/nvml.h"

#include <dlfcn.h>

namespace tutti {

Nvml::Nvml(const char* library) : library_(::dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE), ::dlclose) {
  if (!library_) throw Error(ErrorCode::kSystem, fmt::format("NVML is missing: {}", ::dlerror()));
  find(init_, "nvmlInit_v2");
  find(shutdown_, "nvmlShutdown");
  find(errorString_, "nvmlErrorString");
  check(init_(), "does not start");
}

void* Nvml::symbol(const char* name) const noexcept { return ::dlsym(library_.get(), name); }

void Nvml::check(int status, const std::string& fault) const {
  if (status == kSuccess) return;
  const char* const text = errorString_(status);
  throw Error(ErrorCode::kSystem,
              fmt::format("NVML {}: {} ({})", fault, text != nullptr ? text : "unknown error", status));
}

}  // namespace tutti
