#include "perf/buffer.h"

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "perf/device.h"
#include "perf/failure.h"

namespace tutti::perf {
namespace {

constexpr size_t kPage = 4096;

std::byte canary(size_t i) { return static_cast<std::byte>(0xC5 ^ (i * 29)); }

size_t differing(const std::byte* zone) {
  size_t count = 0;
  for (size_t i = 0; i < Buffer::kGuard; ++i) count += zone[i] != canary(i);
  return count;
}

void plant(std::byte* zone) {
  for (size_t i = 0; i < Buffer::kGuard; ++i) zone[i] = canary(i);
}

}  // namespace

Buffer::Buffer(size_t bytes, size_t slack, MemoryKind kind, tuttiComm_t comm, int rank, int device)
    : device_(device), kind_(kind), comm_(comm) {
  const size_t whole = (bytes + slack + 2 * kGuard + kPage - 1) / kPage * kPage;
  const bool shareable = kind == MemoryKind::kShareable;
  if (shareable && device < 0) {
    require(tuttiMemAlloc(&memory_, whole), "tuttiMemAlloc", rank, comm);
  } else {
    memory_ = std::aligned_alloc(kPage, whole);
    if (memory_ == nullptr) throw Failure(fmt::format("rank {}: out of memory: choose a smaller --maxbytes", rank));
  }
  std::memset(memory_, 0, whole);
  if (shareable && device >= 0)
    require(tuttiMemAllocDevice(&onDevice_, whole, device, 0), "tuttiMemAllocDevice", rank, comm);
  else if (device >= 0)
    onDevice_ = device::allocate(device, whole);
  startAt(0);
  if (kind != MemoryKind::kPlain) {
    require(tuttiCommRegister(comm, data() - kGuard, whole, &registration_, 0), "tuttiCommRegister", rank, comm);
  }
}

Buffer::~Buffer() {
  if (registration_ != nullptr) tuttiCommDeregister(comm_, registration_);
  const bool shareable = kind_ == MemoryKind::kShareable;
  if (shareable)
    tuttiMemFree(device_ < 0 ? memory_ : onDevice_);
  else
    device::release(device_, onDevice_);
  if (!shareable || device_ >= 0) std::free(memory_);
}

void Buffer::plantCanaries(size_t extent) const {
  plant(image() - kGuard);
  plant(image() + extent);
}

size_t Buffer::brokenCanaries(size_t extent) const { return differing(image() - kGuard) + differing(image() + extent); }

void Buffer::publish(size_t extent) const {
  if (onDevice_ != nullptr) device::copyIn(device_, data() - kGuard, image() - kGuard, extent + 2 * kGuard);
}

void Buffer::fetch(size_t extent) const {
  if (onDevice_ != nullptr) device::copyOut(device_, image() - kGuard, data() - kGuard, extent + 2 * kGuard);
}

}  // namespace tutti::perf
