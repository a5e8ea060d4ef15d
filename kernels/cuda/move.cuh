// A run of elements, from the sources of a step to its destinations: the part that all protocols share.
#pragma once
#include "kernels/cuda/block.cuh"
#include "kernels/cuda/math.cuh"

namespace tutti::cuda {

// Where a run begins, in bytes, and how long it is. In a slot or a scratch buffer it begins at a whole grain.
struct Run {
  size_t input, output;
  uint32_t grains;  // in a buffer or slot
  uint32_t bytes;
};

__device__ inline std::byte* placeOf(const Place& place, const Run& run, Grain grain) {
  switch (place.kind) {
    case PlaceKind::kInput:
      return place.base + run.input;
    case PlaceKind::kOutput:
      return place.base + run.output;
    case PlaceKind::kBuffer:
      return place.base + run.grains * grain.payload;
    default:
      return place.base + run.grains * grain.bytes;
  }
}

// The low bytes of a word as an element.
template <class Storage>
__device__ inline Storage elementOf(uint64_t bits) {
  Storage element;
  memcpy(&element, &bits, sizeof element);
  return element;
}

// Up to 8 bytes of plain memory, however it is aligned; what is missing is zero.
__device__ inline uint64_t loadBytes(const std::byte* from, uint32_t bytes) {
  if (bytes >= 8 && reinterpret_cast<uintptr_t>(from) % 8 == 0) return *reinterpret_cast<const uint64_t*>(from);
  uint64_t word = 0;
  for (uint32_t i = 0; i < bytes && i < 8; ++i) word |= static_cast<uint64_t>(from[i]) << (8 * i);
  return word;
}

__device__ inline void storeBytes(std::byte* to, uint64_t word, uint32_t bytes) {
  if (bytes >= 8 && reinterpret_cast<uintptr_t>(to) % 8 == 0) {
    *reinterpret_cast<uint64_t*>(to) = word;
    return;
  }
  for (uint32_t i = 0; i < bytes && i < 8; ++i) to[i] = static_cast<std::byte>(word >> (8 * i));
}

// The bits of an element, in the low bytes.
template <class Storage>
__device__ inline uint64_t bitsOf(Storage element) {
  uint64_t bits = 0;
  memcpy(&bits, &element, sizeof element);
  return bits;
}

}  // namespace tutti::cuda
