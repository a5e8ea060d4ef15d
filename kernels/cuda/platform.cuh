// The leaves of the device code: all that is written one way for a GPU and another way for the emulation that runs the
// same kernels in the tests. Everything above this file is the same source for both.
//
// Words are read and written at system scope: the other side may be another GPU, or the host. A load that acquires
// pairs with the store that releases on the other side of a link; a load that is only a look (peek) decides nothing.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#ifdef TUTTI_EMULATION
#include "emulation/leaves.h"
#endif

namespace tutti::cuda {

// Threads of a block. The emulation runs them one after the other: fewer do.
#ifdef TUTTI_EMULATION
inline constexpr uint32_t kThreads = 64;
#else
inline constexpr uint32_t kThreads = 512;
#endif

// 16 bytes, as memory moves them.
struct alignas(16) Pack {
  uint64_t low, high;
};

// A line of the protocol LL: each half is written and read as a whole.
struct alignas(16) LLLine {
  uint32_t data1, flag1, data2, flag2;
};

// What has been read of memory before is read again after this: the compiler keeps none of it in registers meanwhile.
__device__ inline void forgetWhatWasRead() { asm volatile("" ::: "memory"); }

#ifdef TUTTI_EMULATION

__device__ inline uint64_t loadAcquire(const uint64_t* word) { return emulation::loadAcquire(word); }
__device__ inline uint32_t peek(const uint32_t* word) { return emulation::loadRelaxed(word); }
__device__ inline uint64_t peek(const uint64_t* word) { return emulation::loadRelaxed(word); }
__device__ inline void storeRelease(uint64_t* word, uint64_t value) { emulation::storeRelease(word, value); }
__device__ inline void storeRelease(uint32_t* word, uint32_t value) { emulation::storeRelease(word, value); }
__device__ inline void storeRelaxed(uint64_t* word, uint64_t value) { emulation::storeRelaxed(word, value); }
__device__ inline void storeRelaxed(uint32_t* word, uint32_t value) { emulation::storeRelaxed(word, value); }
__device__ inline uint32_t peekShared(const uint32_t* word) { return emulation::loadRelaxed(word); }
__device__ inline void storeShared(uint32_t* word, uint32_t value) { emulation::storeRelaxed(word, value); }
__device__ inline Pack loadPack(const std::byte* from) { return emulation::loadPack<Pack>(from); }
__device__ inline void storePack(std::byte* to, const Pack& pack) { emulation::storePack(to, pack); }
__device__ inline LLLine loadLine(const std::byte* from) { return emulation::loadLine8x2<LLLine>(from); }
__device__ inline void storeLine(std::byte* to, const LLLine& line) { emulation::storeLine8x2(to, line); }
__device__ inline Pack loadLine128(const std::byte* from) { return emulation::loadLine128<Pack>(from); }
__device__ inline void storeLine128(std::byte* to, const Pack& pack) { emulation::storeLine128(to, pack); }
__device__ inline uint64_t nowNs() { return emulation::globaltimer(); }
template <class T>
__device__ inline T& blockShared() {
  return emulation::blockShared<T>();
}

#else

__device__ inline uint64_t loadAcquire(const uint64_t* word) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
__device__ inline uint32_t peek(const uint32_t* word) {
  uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}
__device__ inline uint64_t peek(const uint64_t* word) {
  uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
__device__ inline void storeRelease(uint64_t* word, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ inline void storeRelease(uint32_t* word, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
__device__ inline void storeRelaxed(uint64_t* word, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ inline void storeRelaxed(uint32_t* word, uint32_t value) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
// Words of the block's shared memory that any of its threads may write at any time.
__device__ inline uint32_t peekShared(const uint32_t* word) { return *const_cast<const volatile uint32_t*>(word); }
__device__ inline void storeShared(uint32_t* word, uint32_t value) { *const_cast<volatile uint32_t*>(word) = value; }
// Plain loads: they come after an acquire and a barrier, so they see what the other side wrote before its release.
__device__ inline Pack loadPack(const std::byte* from) { return *reinterpret_cast<const Pack*>(from); }
__device__ inline void storePack(std::byte* to, const Pack& pack) { *reinterpret_cast<Pack*>(to) = pack; }
__device__ inline LLLine loadLine(const std::byte* from) {
  LLLine line;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(line.data1), "=r"(line.flag1), "=r"(line.data2), "=r"(line.flag2)
               : "l"(from)
               : "memory");
  return line;
}
__device__ inline void storeLine(std::byte* to, const LLLine& line) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(line.data1), "r"(line.flag1),
               "r"(line.data2), "r"(line.flag2)
               : "memory");
}
// All 32 lanes of a warp call these together; each group of 8 has one line of 128 bytes, a lane 16 of them.
__device__ inline Pack loadLine128(const std::byte* from) {
  Pack pack;
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(pack.low), "=l"(pack.high) : "l"(from) : "memory");
  return pack;
}
__device__ inline void storeLine128(std::byte* to, const Pack& pack) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(pack.low), "l"(pack.high) : "memory");
}
__device__ inline uint64_t nowNs() {
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}
// One object of the block, in shared memory, with whatever bits were there.
template <class T>
__device__ inline T& blockShared() {
  __shared__ alignas(16) unsigned char memory[sizeof(T)];
  return *reinterpret_cast<T*>(memory);
}

#endif

template <class Argument>
cudaError_t launchKernel(void (*kernel)(const Argument), uint32_t blocks, uint32_t threads, cudaStream_t stream,
                         const Argument& argument) {
#ifdef TUTTI_EMULATION
  return emulation::launch(kernel, dim3(blocks), dim3(threads), 0, stream, argument);
#else
  cudaLaunchConfig_t shape{};
  shape.gridDim = dim3(blocks);
  shape.blockDim = dim3(threads);
  shape.stream = stream;
  return cudaLaunchKernelEx(&shape, kernel, argument);
#endif
}

}  // namespace tutti::cuda
