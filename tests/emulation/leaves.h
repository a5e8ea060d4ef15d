// The leaves of kernel code: what kernels/cuda/platform.cuh writes as PTX for a GPU, and takes from here on the host.
//
// A load that kernels poll with lets the other threads run first: so a block that waits cannot keep from running what
// it waits for. Outside of a kernel the same functions work too, on the calling thread.
#pragma once
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tutti::emulation {

// Lets the other threads of the block run, and then the other blocks.
void yield() noexcept;

// Reports the running thread's mistake and ends the kernels of its device; outside of a kernel it ends the process.
[[noreturn]] void fail(const char* what) noexcept;

// Nanoseconds of the steady clock.
uint64_t globaltimer() noexcept;

// The dynamic shared memory of the running block: as many bytes as the launch said, aligned to 128.
std::byte* dynamicShared() noexcept;
void* sharedObject(const void* key, size_t bytes, size_t alignment) noexcept;

// The block's object of type T; where a kernel needs several of one type, the tags tell them apart. Poisoned, and not
// constructed: as __shared__ variables are.
template <class T, class Tag = T>
T& blockShared() noexcept {
  static_assert(std::is_trivially_destructible_v<T>, "shared memory has no destructors");
  static constexpr char key = 0;
  return *static_cast<T*>(sharedObject(&key, sizeof(T), alignof(T)));
}

inline void checkAligned(const void* address, size_t alignment) noexcept {
  if (reinterpret_cast<uintptr_t>(address) % alignment != 0) fail("misaligned address");
}

// The lane of the running thread, and a meeting of the lanes in `mask` that orders nothing but their steps.
unsigned laneIndex() noexcept;
void meetLanes(uint32_t mask) noexcept;

// --- words of 4 or 8 bytes, at the scope of the whole system ---

template <class T>
concept Word = std::is_integral_v<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

template <Word T>
std::atomic_ref<T> word(const T* address) noexcept {
  checkAligned(address, sizeof(T));
  return std::atomic_ref<T>(*const_cast<T*>(address));
}

template <Word T>
T loadAcquire(const T* address) noexcept {  // with storeRelease()
  yield();
  return word(address).load(std::memory_order_acquire);
}
template <Word T>
T loadRelaxed(const T* address) noexcept {
  yield();
  return word(address).load(std::memory_order_relaxed);
}
template <Word T>
void storeRelease(T* address, std::type_identity_t<T> value) noexcept {  // with loadAcquire()
  word(address).store(value, std::memory_order_release);
}
template <Word T>
void storeRelaxed(T* address, std::type_identity_t<T> value) noexcept {
  word(address).store(value, std::memory_order_relaxed);
}

// --- packs: 16 bytes, as memory moves them ---

template <class T>
concept Packed = sizeof(T) == 16 && std::is_trivially_copyable_v<T>;

// Ordinary accesses, ordered by what surrounds them.
template <Packed T>
T loadPack(const void* from) noexcept {
  checkAligned(from, sizeof(T));
  T pack;
  std::memcpy(&pack, from, sizeof pack);
  return pack;
}
template <Packed T>
void storePack(void* to, const T& pack) noexcept {
  checkAligned(to, sizeof(T));
  std::memcpy(to, &pack, sizeof pack);
}

// The two halves of a pack that others may access at the same time.
struct Halves {
  uint64_t low, high;
};
Halves loadHalves(const void* from) noexcept;  // polls
void storeHalves(void* to, Halves halves) noexcept;

// --- LL: a line of 16 bytes, each half of which is 4 bytes of data and their flag, and moves as a whole ---

template <Packed T>
T loadLine8x2(const void* line) noexcept {
  return std::bit_cast<T>(loadHalves(line));
}
template <Packed T>
void storeLine8x2(void* line, const T& value) noexcept {
  storeHalves(line, std::bit_cast<Halves>(value));
}

// --- LL128: 8 lanes move a line of 128 bytes, of which the last 8 bytes are the flag ---
//
// Called by all the lanes of a warp together, each with the address of its own 16 bytes. A GPU stores the line as a
// whole, but may load it in parts. Here the flags leave last, and are loaded last: who sees a flag sees the data that
// was stored with it when it loads the line once more, and not before.

Halves loadShare128(const void* mine, uint32_t mask) noexcept;
void storeShare128(void* mine, Halves halves, uint32_t mask) noexcept;

template <Packed T>
T loadLine128(const void* mine, uint32_t mask = ~0u) noexcept {
  return std::bit_cast<T>(loadShare128(mine, mask));
}
template <Packed T>
void storeLine128(void* mine, const T& value, uint32_t mask = ~0u) noexcept {
  storeShare128(mine, std::bit_cast<Halves>(value), mask);
}

}  // namespace tutti::emulation
