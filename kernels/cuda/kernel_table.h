// What a hot kernel is made for, and the tables of them (hot_kernels.cuh): one for each protocol, each in its file.
#pragma once
#include <array>
#include <iterator>

#include "kernels/cuda/types.h"

namespace tutti::cuda {

using Kernel = void (*)(const KernelLaunch);

// The types whose sum, or average, has kernels of its own (docs/decisions/0008).
inline constexpr DataType kHotTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16};

struct HotKernels {
  Kernel move;  // of collectives that do not reduce
  std::array<Kernel, std::size(kHotTypes)> sums;

  // Null: there is none for the type.
  Kernel sumOf(DataType type) const noexcept {
    for (size_t i = 0; i < sums.size(); ++i)
      if (kHotTypes[i] == type) return sums[i];
    return nullptr;
  }
};

extern const HotKernels kSimpleKernels, kLLKernels, kLL128Kernels;

struct HotRow {
  Protocol protocol;
  const HotKernels* kernels;
};
inline constexpr HotRow kHotKernels[] = {
    {Protocol::kSimple, &kSimpleKernels}, {Protocol::kLL, &kLLKernels}, {Protocol::kLL128, &kLL128Kernels}};
static_assert(std::size(kHotKernels) == kProtocols && areInOrder(kHotKernels, &HotRow::protocol),
              "a row of device/protocol.h has no kernels");

constexpr const HotKernels& hotKernelsOf(Protocol protocol) noexcept {
  return *kHotKernels[static_cast<size_t>(protocol)].kernels;
}

}  // namespace tutti::cuda
