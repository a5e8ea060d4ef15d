// Which kernel runs a launch, and its launch. Hot: a sum or average of kHotTypes, and plain data movement, for each
// protocol. Everything else, and mixtures, share one kernel, so that the library stays small
// (docs/decisions/0008).
#include "kernels/cuda/collective.h"

#include "kernels/cuda/collective.cuh"
#include "kernels/cuda/kernel_table.h"

namespace tutti::cuda {
namespace {

__global__ void __launch_bounds__(kThreads, 1) tuttiAnyCollective(const __grid_constant__ KernelLaunch launch) {
  const KernelWork& work = findWork(launch);
  EveryProtocol::with(work.protocol, [&](auto protocol) { runWork<decltype(protocol), Anything>(work); });
}

Kernel kernelFor(const KernelWork& work) {
  const HotKernels& kernels = hotKernelsOf(work.protocol);
  const auto collective = static_cast<Collective>(work.fingerprint.kindAndType >> 4);
  if (collective == Collective::kBarrier) return tuttiAnyCollective;
  if (!reduces(collective)) return kernels.move;
  const ReduceOp op = work.arithmetic.op;
  if (op != ReduceOp::kSum && op != ReduceOp::kAvg) return tuttiAnyCollective;
  if (const Kernel hot = kernels.sumOf(work.arithmetic.type)) return hot;
  return tuttiAnyCollective;
}

// Works beyond those in the launch itself are of a group, and may be anything.
Kernel kernelFor(const KernelLaunch& launch) {
  if (launch.more != nullptr) return tuttiAnyCollective;
  const Kernel first = kernelFor(launch.works[0]);
  for (uint32_t i = 1; i < launch.count; ++i)
    if (kernelFor(launch.works[i]) != first) return tuttiAnyCollective;
  return first;
}

cudaError_t load(Kernel kernel, int& residentBlocks) {
  cudaFuncAttributes attributes;
  if (const auto error = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel))) return error;
  int blocks = 0;
  const auto error =
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reinterpret_cast<const void*>(kernel), kThreads, 0);
  residentBlocks = blocks < residentBlocks ? blocks : residentBlocks;
  return error;
}

}  // namespace

cudaError_t launchCollective(const KernelLaunch& launch, uint32_t blocks, cudaStream_t stream) {
  return launchKernel(kernelFor(launch), blocks, kThreads, stream, launch);
}

cudaError_t loadKernels(int& residentBlocksPerMultiprocessor) {
  residentBlocksPerMultiprocessor = 1 << 30;
  if (const auto error = load(tuttiAnyCollective, residentBlocksPerMultiprocessor)) return error;
  for (const auto& [protocol, kernels] : kHotKernels) {
    if (const auto error = load(kernels->move, residentBlocksPerMultiprocessor)) return error;
    for (const Kernel sum : kernels->sums)
      if (const auto error = load(sum, residentBlocksPerMultiprocessor)) return error;
  }
  return cudaSuccess;
}

uint32_t threadsPerBlock() { return kThreads; }

}  // namespace tutti::cuda
