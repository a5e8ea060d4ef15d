// RDMA devices, opened once a process: by libibverbs.
#pragma once
#include <infiniband/verbs.h>

#include <memory>
#include <string>
#include <vector>

#include "transports/verbs/ports.h"

namespace tutti::verbs {

// Throws std::runtime_error that names the call and the device.
[[noreturn]] void refused(const std::string& what, int error);

class Device {
 public:
  // The process's, opened when it is first asked for, and as long as anybody has it. Throws std::runtime_error.
  static std::shared_ptr<Device> named(const std::string& name);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  ibv_context* context() const noexcept { return context_; }
  ibv_pd* domain() const noexcept { return domain_; }
  const ibv_device_attr& limits() const noexcept { return limits_; }

 private:
  explicit Device(ibv_context* context);
  ibv_context* context_;
  ibv_pd* domain_ = nullptr;
  ibv_device_attr limits_{};
};

// All ports of all devices as they are now. Empty where there is none, or where they cannot be listed.
std::vector<Port> portsHere();

}  // namespace tutti::verbs
