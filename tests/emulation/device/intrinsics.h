// CUDA's functions for the threads of a block and of a warp, for atomic operations and fences, under CUDA's names.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

#include "emulation/device/block.h"
#include "emulation/device/language.h"
#include "emulation/leaves.h"

using std::max;  // which nvcc has without a namespace
using std::min;

namespace tutti::emulation {

// The running thread's block; a mistake outside of kernels.
inline Block& blockOf(const char* operation) noexcept {
  Block* block = currentBlock();
  if (!block) fail(operation);
  return *block;
}

inline unsigned votesOfBlock(const char* operation, bool vote, const Place& place) noexcept {
  Block& block = blockOf(operation);
  block.meetBlock(operation, vote, place);
  return block.thread().votes;
}

inline uint32_t ballotOf(const char* operation, uint32_t mask, bool vote, const Place& place) noexcept {
  Exchange exchange{.operation = operation, .mask = mask, .offer = vote};
  blockOf(operation).meetWarp(exchange, place);
  return exchange.ballot;
}

template <class T>
T shuffled(const char* operation, uint32_t mask, T value, unsigned source, const Place& place) noexcept {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  Exchange exchange{.operation = operation, .mask = mask, .source = source};
  std::memcpy(&exchange.offer, &value, sizeof value);
  blockOf(operation).meetWarp(exchange, place);
  std::memcpy(&value, &exchange.received, sizeof value);
  return value;
}

// The lane that a shuffle within parts of `width` lanes reads from; beyond the part it is the lane itself.
inline unsigned within(unsigned lane, int64_t wanted, int width) noexcept {
  const int64_t begin = lane / static_cast<unsigned>(width) * static_cast<unsigned>(width);
  return wanted >= begin && wanted < begin + width ? static_cast<unsigned>(wanted) : lane;
}

// Kernels spin with atomic operations as they do with loads.
template <class T, class Change>
T changed(T* address, Change change) noexcept {
  checkAligned(address, sizeof(T));
  yield();
  std::atomic_ref<T> value(*address);
  T old = value.load(std::memory_order_relaxed);
  while (!value.compare_exchange_weak(old, change(old), std::memory_order_relaxed)) {
  }
  return old;
}

}  // namespace tutti::emulation

// --- barriers ---

inline void __syncthreads(const tutti::emulation::Place& place = tutti::emulation::Place::current()) {
  tutti::emulation::votesOfBlock("__syncthreads", false, place);
}
inline int __syncthreads_count(int vote, const tutti::emulation::Place& place = tutti::emulation::Place::current()) {
  return static_cast<int>(tutti::emulation::votesOfBlock("__syncthreads_count", vote != 0, place));
}
inline int __syncthreads_or(int vote, const tutti::emulation::Place& place = tutti::emulation::Place::current()) {
  return tutti::emulation::votesOfBlock("__syncthreads_or", vote != 0, place) != 0;
}
inline int __syncthreads_and(int vote, const tutti::emulation::Place& place = tutti::emulation::Place::current()) {
  const auto& size = blockDim;
  return tutti::emulation::votesOfBlock("__syncthreads_and", vote != 0, place) == size.x * size.y * size.z;
}
inline void __syncwarp(unsigned mask = ~0u, const tutti::emulation::Place& place = tutti::emulation::Place::current()) {
  tutti::emulation::Exchange exchange{.operation = "__syncwarp", .mask = mask, .ordered = true};
  tutti::emulation::blockOf("__syncwarp").meetWarp(exchange, place);
}

// --- votes ---

inline unsigned __ballot_sync(unsigned mask, int vote,
                              const tutti::emulation::Place& place = tutti::emulation::Place::current()) {
  return tutti::emulation::ballotOf("__ballot_sync", mask, vote != 0, place);
}
inline int __any_sync(unsigned mask, int vote,
                      const tutti::emulation::Place& place = tutti::emulation::Place::current()) {
  return tutti::emulation::ballotOf("__any_sync", mask, vote != 0, place) != 0;
}
inline int __all_sync(unsigned mask, int vote,
                      const tutti::emulation::Place& place = tutti::emulation::Place::current()) {
  return tutti::emulation::ballotOf("__all_sync", mask, vote != 0, place) == mask;
}

// --- shuffles ---

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize,
              const tutti::emulation::Place& place = tutti::emulation::Place::current()) {
  const auto lane = tutti::emulation::laneIndex(), size = static_cast<unsigned>(width);
  const unsigned from = lane / size * size + static_cast<unsigned>(source) % size;
  return tutti::emulation::shuffled("__shfl_sync", mask, value, from, place);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize,
                  const tutti::emulation::Place& place = tutti::emulation::Place::current()) {
  const auto lane = tutti::emulation::laneIndex();
  const unsigned from = lane ^ static_cast<unsigned>(bits), size = static_cast<unsigned>(width);
  // A lane of an earlier part may be read, one of a later part may not.
  return tutti::emulation::shuffled("__shfl_xor_sync", mask, value, from / size > lane / size ? lane : from, place);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                   const tutti::emulation::Place& place = tutti::emulation::Place::current()) {
  const auto lane = tutti::emulation::laneIndex();
  return tutti::emulation::shuffled("__shfl_down_sync", mask, value,
                                    tutti::emulation::within(lane, int64_t{lane} + delta, width), place);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                 const tutti::emulation::Place& place = tutti::emulation::Place::current()) {
  const auto lane = tutti::emulation::laneIndex();
  return tutti::emulation::shuffled("__shfl_up_sync", mask, value,
                                    tutti::emulation::within(lane, int64_t{lane} - delta, width), place);
}

// --- atomic operations: relaxed, as CUDA's are; the scopes differ on a GPU only ---

template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return tutti::emulation::changed(address, [=](T old) { return static_cast<T>(old + value); });
}
template <class T>
T atomicSub(T* address, std::type_identity_t<T> value) {
  return tutti::emulation::changed(address, [=](T old) { return static_cast<T>(old - value); });
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return tutti::emulation::changed(address, [=](T) { return value; });
}
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return tutti::emulation::changed(address, [=](T old) { return old == expected ? value : old; });
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return tutti::emulation::changed(address, [=](T old) { return old < value ? value : old; });
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return tutti::emulation::changed(address, [=](T old) { return value < old ? value : old; });
}
template <class T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return tutti::emulation::changed(address, [=](T old) { return old | value; });
}
template <class T>
T atomicAnd(T* address, std::type_identity_t<T> value) {
  return tutti::emulation::changed(address, [=](T old) { return old & value; });
}
template <class T>
T atomicAdd_system(T* address, std::type_identity_t<T> value) {
  return atomicAdd(address, value);
}
template <class T>
T atomicExch_system(T* address, std::type_identity_t<T> value) {
  return atomicExch(address, value);
}
template <class T>
T atomicCAS_system(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return atomicCAS(address, expected, value);
}
template <class T>
T atomicMax_system(T* address, std::type_identity_t<T> value) {
  return atomicMax(address, value);
}
template <class T>
T atomicMin_system(T* address, std::type_identity_t<T> value) {
  return atomicMin(address, value);
}
template <class T>
T atomicOr_system(T* address, std::type_identity_t<T> value) {
  return atomicOr(address, value);
}
template <class T>
T atomicAnd_system(T* address, std::type_identity_t<T> value) {
  return atomicAnd(address, value);
}

// --- fences ---

void __threadfence_system();
inline void __threadfence() { __threadfence_system(); }
inline void __threadfence_block() { __threadfence_system(); }

// --- time ---

inline void __nanosleep(unsigned) { tutti::emulation::yield(); }
inline long long clock64() { return static_cast<long long>(tutti::emulation::globaltimer()); }

// --- the rest ---

template <class T>
T __ldg(const T* address) {
  return *address;
}
inline int __popc(unsigned bits) { return std::popcount(bits); }
inline int __popcll(unsigned long long bits) { return std::popcount(bits); }
inline int __ffs(int bits) { return bits ? std::countr_zero(static_cast<unsigned>(bits)) + 1 : 0; }
inline int __clz(int bits) { return std::countl_zero(static_cast<unsigned>(bits)); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
[[noreturn]] inline void __trap() { tutti::emulation::fail("__trap"); }
