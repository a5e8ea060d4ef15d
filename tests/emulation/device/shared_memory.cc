#include "emulation/device/shared_memory.h"

#include <cstring>
#include <new>

#include "emulation/device/sanitizers.h"

namespace tutti::emulation {
namespace {

constexpr size_t kAlignment = 128, kGap = 32;  // a gap behind every object: the address sanitizer guards it

}  // namespace

SharedMemory::Memory SharedMemory::poisoned(size_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, bytes) != 0) throw std::bad_alloc();
  std::memset(memory, kPoison, bytes);
  return Memory(static_cast<std::byte*>(memory));
}

SharedMemory::SharedMemory(size_t dynamicBytes)
    : dynamic_(poisoned(dynamicBytes)), static_(poisoned(kStaticSharedBytes)) {
  objects_.reserve(kStaticSharedBytes / kGap);  // a fiber that allocates would look as if it raced with the others
  sanitizers::forbid(static_.get(), kStaticSharedBytes);
}

SharedMemory::~SharedMemory() { sanitizers::allow(static_.get(), kStaticSharedBytes); }

void* SharedMemory::object(const void* key, size_t bytes, size_t alignment) noexcept {
  for (const auto& object : objects_)
    if (object.key == key) return object.memory;
  const size_t begin = (used_ + alignment - 1) / alignment * alignment;
  if (alignment > kAlignment || begin + bytes > kStaticSharedBytes) return nullptr;
  used_ = begin + bytes + kGap;
  std::byte* memory = static_.get() + begin;
  sanitizers::allow(memory, bytes);
  objects_.push_back({key, memory});
  return memory;
}

}  // namespace tutti::emulation
