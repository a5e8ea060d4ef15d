// Shareable memory, registration and operators.
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>

#include "api/check.h"
#include "api/guard.h"
#include "device/user_memory.h"
#include "process/fd.h"
#include "process/fork.h"
#include "window/lasting_memory.h"
#include "window/own_window.h"

using namespace tutti;
using namespace tutti::api;

namespace {

void checkSize(size_t bytes, const char* call) {
  if (bytes > PTRDIFF_MAX)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: bytes is {}: no memory is that large", call, bytes));
}

void checkRange(const void* buffer, size_t bytes, const char* call) {
  checkSize(bytes, call);
  if (reinterpret_cast<uintptr_t>(buffer) > UINTPTR_MAX - bytes)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: {} bytes from buffer on go beyond the end of all memory", call, bytes));
}

// In the window of this process, where peers read it in place; else in a file of its own, where nobody does.
std::shared_ptr<void> allocateOnHost(size_t bytes) {
  if (auto memory = window::OwnWindow::ofProcess().allocate(bytes)) return memory;
  const UniqueFd file = createMemoryFile("tutti-memory", bytes);
  const auto map = std::make_shared<UniqueMap>(mapShared(file.get(), bytes));
  return {map, map->data()};
}

// What tuttiMemAlloc and tuttiMemAllocDevice have given out; process-wide, as malloc's heap is.
class Allocations {
 public:
  void* keepOnHost(size_t bytes) {
    Kept kept{allocateOnHost(bytes), {}};
    kept.lasts = std::make_unique<window::Lasts>(kept.memory.get(), bytes);
    return keep(std::move(kept));
  }
  void* keepOnDevice(std::shared_ptr<void> memory) { return keep({std::move(memory), {}}); }
  bool release(void* pointer) {
    Kept kept;  // goes without the lock: freeing memory of a GPU may wait, and devices may have it registered
    std::lock_guard lock(mutex_);
    const auto found = all_.find(pointer);
    if (found == all_.end()) return false;
    kept = std::move(found->second);
    all_.erase(found);
    return true;
  }

 private:
  struct Kept {
    std::shared_ptr<void> memory;
    std::unique_ptr<window::Lasts> lasts;  // goes first
  };
  void* keep(Kept kept) {
    void* const address = kept.memory.get();
    std::lock_guard lock(mutex_);
    all_.emplace(address, std::move(kept));
    return address;
  }

  fork::Mutex mutex_;  // guards what follows
  std::map<void*, Kept> all_;
};

Allocations& allocations = *new Allocations;  // outlives every thread of the program

}  // namespace

extern "C" {

tuttiResult_t tuttiMemAlloc(void** pointer, size_t bytes) {
  return guarded(nullptr, [&] {
    checkPointer(pointer, "tuttiMemAlloc", "pointer");
    checkSize(bytes, "tuttiMemAlloc");
    *pointer = allocations.keepOnHost(bytes == 0 ? 1 : bytes);
  });
}

tuttiResult_t tuttiMemAllocDevice(void** pointer, size_t bytes, int device, unsigned int flags) {
  const char* name = "tuttiMemAllocDevice";
  return guarded(nullptr, [&] {
    checkFlags(flags, name);
    checkPointer(pointer, name, "pointer");
    checkSize(bytes, name);
    if (device < -1) throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: device is {}", name, device));
    const size_t some = bytes == 0 ? 1 : bytes;
    *pointer =
        device < 0 ? allocations.keepOnHost(some) : allocations.keepOnDevice(device::allocateOnDevice(device, some));
  });
}

tuttiResult_t tuttiMemFree(void* pointer) {
  return guarded(nullptr, [&] {
    if (pointer != nullptr && !allocations.release(pointer))
      throw Error(ErrorCode::kInvalidArgument,
                  "tuttiMemFree: pointer did not come from tuttiMemAlloc or tuttiMemAllocDevice, or is freed already");
  });
}

tuttiResult_t tuttiCommRegister(tuttiComm_t comm, void* buffer, size_t bytes, void** handle, unsigned int flags) {
  const char* name = "tuttiCommRegister";
  return guarded(comm, [&] {
    CallGuard visit(comm, name);
    checkFlags(flags, name);
    checkPointer(buffer, name, "buffer");
    checkPointer(handle, name, "handle");
    checkRange(buffer, bytes, name);
    *handle = const_cast<void*>(visit->addBuffer(buffer, bytes));
  });
}

tuttiResult_t tuttiCommDeregister(tuttiComm_t comm, void* handle) {
  const char* name = "tuttiCommDeregister";
  return guarded(comm, [&] {
    CallGuard visit(comm, name);
    if (!visit->endBuffer(handle))
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: handle was not made by tuttiCommRegister on this communicator", name));
  });
}

tuttiResult_t tuttiRedOpCreatePreMulSum(tuttiRedOp_t* op, void* scalar, tuttiDataType_t type,
                                        tuttiScalarResidence_t residence, tuttiComm_t comm) {
  const char* name = "tuttiRedOpCreatePreMulSum";
  return guarded(comm, [&] {
    CallGuard visit(comm, name);
    checkPointer(op, name, "op");
    checkPointer(scalar, name, "scalar");
    if (residence != tuttiScalarDevice && residence != tuttiScalarHostImmediate)
      throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: residence is {}", name, static_cast<int>(residence)));
    Operator made{checkType(type, name), 0, nullptr, true};
    if (!isDefined(ReduceOp::kPreMulSum, made.type)) refuseUndefined(ReduceOp::kPreMulSum, made.type, name);
    if (visit->executor().traits().readsFactorsLate && residence == tuttiScalarDevice)
      made.factorAt = scalar;
    else
      std::memcpy(&made.factor, scalar, sizeOf(made.type));
    comm->operators.push_back(made);
    *op = static_cast<tuttiRedOp_t>(kFirstMadeOp + static_cast<int>(comm->operators.size()) - 1);
  });
}

tuttiResult_t tuttiRedOpDestroy(tuttiRedOp_t op, tuttiComm_t comm) {
  const char* name = "tuttiRedOpDestroy";
  return guarded(comm, [&] {
    CallGuard visit(comm, name);
    const int number = static_cast<int>(op);
    const size_t index = number < kFirstMadeOp ? SIZE_MAX : static_cast<size_t>(number - kFirstMadeOp);
    if (index >= comm->operators.size() || !comm->operators[index].alive)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: op is {}: not an operator made on this communicator", name, number));
    comm->operators[index].alive = false;
    while (!comm->operators.empty() && !comm->operators.back().alive) comm->operators.pop_back();
  });
}

}  // extern "C"
