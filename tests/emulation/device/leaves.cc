#include "emulation/leaves.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "emulation/device/block.h"

namespace tutti::emulation {
namespace {

constexpr unsigned kLanesOfLine = 8;  // of 128 bytes

std::atomic_ref<uint64_t> half(const void* address, size_t which) {
  return std::atomic_ref<uint64_t>(static_cast<uint64_t*>(const_cast<void*>(address))[which]);
}

bool hasFlag() noexcept { return laneIndex() % kLanesOfLine == kLanesOfLine - 1; }

}  // namespace

void yield() noexcept {
  if (Block* block = currentBlock())
    block->yield();
  else
    std::this_thread::yield();
}

void fail(const char* what) noexcept {
  if (Block* block = currentBlock()) block->fail(what);
  std::fprintf(stderr, "emulation: outside of a kernel: %s\n", what);
  std::abort();
}

uint64_t globaltimer() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

std::byte* dynamicShared() noexcept {
  Block* block = currentBlock();
  if (!block) fail("shared memory is a block's");
  return block->shared().dynamic();
}

void* sharedObject(const void* key, size_t bytes, size_t alignment) noexcept {
  Block* block = currentBlock();
  if (!block) fail("shared memory is a block's");
  void* memory = block->shared().object(key, bytes, alignment);
  if (!memory) fail("the shared objects of the kernel need more than 48 KiB");
  return memory;
}

unsigned laneIndex() noexcept {
  Block* block = currentBlock();
  return block ? block->thread().number % kLanes : 0;
}

void meetLanes(uint32_t mask) noexcept {
  Block* block = currentBlock();
  if (!block) fail("lines of 128 bytes are moved by warps");
  Exchange exchange{.operation = "a line of 128 bytes", .mask = mask};
  block->meetWarp(exchange, Place::current());
}

Halves loadHalves(const void* from) noexcept {
  checkAligned(from, sizeof(Halves));
  yield();
  return {half(from, 0).load(std::memory_order_relaxed), half(from, 1).load(std::memory_order_relaxed)};
}

void storeHalves(void* to, Halves halves) noexcept {
  checkAligned(to, sizeof halves);
  half(to, 0).store(halves.low, std::memory_order_relaxed);
  half(to, 1).store(halves.high, std::memory_order_relaxed);
}

Halves loadShare128(const void* mine, uint32_t mask) noexcept {
  checkAligned(mine, sizeof(Halves));
  Halves halves;
  yield();
  halves.low = half(mine, 0).load(std::memory_order_relaxed);
  if (!hasFlag()) halves.high = half(mine, 1).load(std::memory_order_relaxed);
  meetLanes(mask);
  yield();
  if (hasFlag()) halves.high = half(mine, 1).load(std::memory_order_acquire);  // with the flag's store below
  meetLanes(mask);
  return halves;
}

// On a GPU, lanes that have come apart store parts of a line in turn, the flag's perhaps first.
void storeShare128(void* mine, Halves halves, uint32_t mask) noexcept {
  checkAligned(mine, sizeof halves);
  if (Block* block = currentBlock(); block != nullptr && !block->thread().converged)
    fail("a line of 128 bytes is stored by lanes that have not met before (__syncwarp)");
  half(mine, 0).store(halves.low, std::memory_order_relaxed);
  if (!hasFlag()) half(mine, 1).store(halves.high, std::memory_order_relaxed);
  meetLanes(mask);
  if (hasFlag()) half(mine, 1).store(halves.high, std::memory_order_release);  // with the flag's load above
}

}  // namespace tutti::emulation
