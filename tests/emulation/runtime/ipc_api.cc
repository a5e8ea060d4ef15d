// Memory of one process mapped by another one of the same user. A handle says which descriptor of which process holds
// it.
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <vector>

#include "emulation/device/sanitizers.h"
#include "emulation/runtime/capture.h"
#include "emulation/runtime/device.h"
#include "emulation/runtime/error.h"
#include "emulation/runtime/memory.h"

using namespace tutti::emulation;

namespace {

constexpr uint64_t kMagic = 0x6370692d69747475;

struct Handle {
  uint64_t magic;
  int32_t pid, fd;
  uint64_t inode;  // of the memfd: the descriptor may have become another one
  uint64_t mapped, offset, bytes;
  int32_t device;
};
static_assert(sizeof(Handle) <= CUDA_IPC_HANDLE_SIZE);

// What this process has opened: opening again gives the same address, and one more to close.
struct Opened {
  uint64_t inode;
  std::byte* data;
  unsigned times;
};
struct OpenedMemory {
  std::mutex mutex;
  std::vector<Opened> all;
};
OpenedMemory& opened() {
  static auto* const opened = new OpenedMemory;  // outlives every thread of the program
  return *opened;
}

std::shared_ptr<Pages> pagesOf(const Handle& handle) {
  const auto path = fmt::format("/proc/{}/fd/{}", handle.pid, handle.fd);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  if (inodeOf(fd) == handle.inode) return Pages::map(fd, handle.mapped);
  close(fd);
  return nullptr;
}

cudaError_t openHandle(void** memory, const Handle& handle) {
  if (handle.magic != kMagic) return cudaErrorInvalidValue;
  if (handle.pid == getpid()) return cudaErrorDeviceUninitialized;  // as CUDA: a handle is for another process
  const std::lock_guard lock(opened().mutex);
  for (auto& entry : opened().all) {
    if (entry.inode != handle.inode) continue;
    ++entry.times;
    *memory = entry.data;
    return cudaSuccess;
  }
  auto pages = pagesOf(handle);
  if (!pages) return cudaErrorInvalidValue;
  std::byte* data = pages->data() + handle.offset;
  memoryMap().add({data, handle.bytes, MemoryKind::kImported, currentDevice().ordinal, std::move(pages)});
  opened().all.push_back({handle.inode, data, 1});
  *memory = data;
  return cudaSuccess;
}

cudaError_t closeHandle(void* memory) {
  const auto known = memoryMap().find(memory);
  if (!known || known->data != memory || known->kind != MemoryKind::kImported) return cudaErrorInvalidValue;
  const auto error = currentDevice().synchronize();
  const std::lock_guard lock(opened().mutex);
  std::erase_if(opened().all, [&](Opened& entry) {
    if (entry.data != memory || --entry.times > 0) return false;
    memoryMap().take(memory, MemoryKind::kImported);
    return true;
  });
  return error;
}

}  // namespace

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* out, void* memory) {
  const auto known = memoryMap().find(memory);
  if (!out || !known || known->kind != MemoryKind::kDevice) return note(cudaErrorInvalidValue);
  const Pages& pages = *known->pages;
  const Handle handle{kMagic,        getpid(),
                      pages.fd(),    inodeOf(pages.fd()),
                      pages.bytes(), static_cast<uint64_t>(known->data - pages.data()),
                      known->bytes,  known->device};
  *out = {};
  std::memcpy(out, &handle, sizeof handle);
  return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t given, unsigned flags) {
  if (!memory || flags != cudaIpcMemLazyEnablePeerAccess) return note(cudaErrorInvalidValue);
  if (const auto error = unsafeCall(); error != cudaSuccess) return note(error);
  Handle handle;
  std::memcpy(&handle, &given, sizeof handle);
  return note(openHandle(memory, handle));
}

cudaError_t cudaIpcCloseMemHandle(void* memory) {
  const auto error = unsafeCall();
  return note(error == cudaSuccess ? closeHandle(memory) : error);
}
