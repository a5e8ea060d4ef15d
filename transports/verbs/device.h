// RDMA devices, opened once a process: by libibverbs.
#pragma once
#include <infiniband/verbs.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transports/verbs/memory_cache.h"
#include "transports/verbs/ports.h"

namespace tutti::verbs {

// Throws std::runtime_error that names the call and the device.
[[noreturn]] void refused(const std::string& what, int error);

class Device final : public Registrar {
 public:
  // The process's, opened when it is first asked for, and as long as anybody has it. Throws std::runtime_error.
  static std::shared_ptr<Device> named(const std::string& name);
  // What this process's devices have registered of it goes, or with the last one that holds it.
  static void forget(uint64_t memory);
  // Of all that they have registered of users' memory, one piece that nobody holds goes: the limit of locked memory is
  // the process's. False: there is none, or no memory to look.
  static bool giveUpOne() noexcept;
  ~Device() override;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  ibv_context* context() const noexcept { return context_; }
  ibv_pd* domain() const noexcept { return domain_; }
  const ibv_device_attr& limits() const noexcept { return limits_; }
  static std::shared_ptr<MemoryCache> memoryOf(const std::shared_ptr<Device>& device) {
    return {device, &*device->memory_};
  }

  std::string name() const override;
  Made add(const void* begin, size_t bytes) noexcept override;
  void remove(void* handle) noexcept override;

 private:
  static std::vector<std::shared_ptr<Device>> all();
  explicit Device(ibv_context* context);
  ibv_context* context_;
  ibv_pd* domain_ = nullptr;
  ibv_device_attr limits_{};
  std::optional<MemoryCache> memory_{*this};
};

// All ports of all devices as they are now. Empty where there is none, or where they cannot be listed.
std::vector<Port> portsHere();

}  // namespace tutti::verbs
