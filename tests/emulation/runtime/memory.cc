#include "emulation/runtime/memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mutex>

namespace tutti::emulation {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

std::unique_ptr<Pages> Pages::create(size_t bytes) {
  const size_t whole = (bytes + kPage - 1) / kPage * kPage;
  const int fd = memfd_create("tutti-emulated-device", MFD_CLOEXEC);
  if (fd < 0) return nullptr;
  if (ftruncate(fd, static_cast<off_t>(whole)) != 0) return close(fd), nullptr;
  return map(fd, whole);
}

std::unique_ptr<Pages> Pages::map(int fd, size_t bytes) {
  std::unique_ptr<Pages> pages(new Pages(fd, bytes));
  void* all = mmap(nullptr, bytes + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  pages->data_ = static_cast<std::byte*>(all);
  if (mmap(all, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) return nullptr;
  return pages;
}

Pages::~Pages() {
  if (data_) munmap(data_, bytes_ + kPage);
  close(fd_);
}

bool MemoryMap::add(Memory memory) {
  const std::unique_lock lock(mutex_);
  const auto next = all_.upper_bound(memory.data);
  if (next != all_.end() && next->second.data < memory.data + memory.bytes) return false;
  const std::byte* end = memory.data + memory.bytes;
  all_.emplace(end, std::move(memory));
  return true;
}

std::optional<Memory> MemoryMap::find(const void* address) const {
  const std::shared_lock lock(mutex_);
  const auto* wanted = static_cast<const std::byte*>(address);
  const auto found = all_.upper_bound(wanted);
  if (found == all_.end() || found->second.data > wanted) return std::nullopt;
  return found->second;
}

std::optional<Memory> MemoryMap::take(const void* address, MemoryKind kind) {
  const std::unique_lock lock(mutex_);
  const auto* wanted = static_cast<const std::byte*>(address);
  const auto found = all_.upper_bound(wanted);
  if (found == all_.end() || found->second.data != wanted || found->second.kind != kind) return std::nullopt;
  auto memory = std::move(found->second);
  all_.erase(found);
  return memory;
}

size_t MemoryMap::deviceBytes() const {
  const std::shared_lock lock(mutex_);
  size_t bytes = 0;
  for (const auto& [end, memory] : all_)
    if (memory.kind == MemoryKind::kDevice || memory.kind == MemoryKind::kDeviceAsync) bytes += memory.bytes;
  return bytes;
}

MemoryMap& memoryMap() {
  static auto* const map = new MemoryMap;  // outlives every thread of the program
  return *map;
}

uint64_t inodeOf(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

}  // namespace tutti::emulation
