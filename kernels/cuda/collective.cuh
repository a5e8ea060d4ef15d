// The kernel: each block finds its work and its channel, runs the schedule, and leaves the links' counters where the
// next launch finds them.
#pragma once
#include "kernels/cuda/protocols.cuh"
#include "kernels/cuda/steps.cuh"

namespace tutti::cuda {

__device__ inline const KernelWork& workAt(const KernelLaunch& launch, uint32_t number) {
  return launch.more != nullptr ? launch.more[number] : launch.works[number];
}

__device__ inline const KernelWork& findWork(const KernelLaunch& launch) {
  uint32_t number = launch.count - 1;
  while (workAt(launch, number).firstBlock > blockIdx.x) --number;
  return workAt(launch, number);
}

// The work comes into shared memory by a word of each thread: one thread would wait for line after line of it.
__device__ inline void fetchWork(Block& block, const KernelWork& work) {
  constexpr uint32_t kWords = sizeof(KernelWork) / sizeof(uint64_t);
  static_assert(sizeof(KernelWork) % sizeof(uint64_t) == 0 && kWords <= kThreads);
  const auto* const from = reinterpret_cast<const std::byte*>(&work);
  auto* const to = reinterpret_cast<std::byte*>(&block.work);
  if (threadIdx.x < kWords)
    memcpy(to + threadIdx.x * sizeof(uint64_t), from + threadIdx.x * sizeof(uint64_t), sizeof(uint64_t));
  __syncthreads();
}

// What lies in memory is asked for at once, by different threads: a short operation is made of such waits.
__device__ inline void begin(Block& block, const KernelWork& launched) {
  fetchWork(block, launched);
  KernelWork& work = block.work;
  const DeviceComm& seat = work.seat;
  const Program& program = work.program;
  const uint32_t channel = blockIdx.x - work.firstBlock;
  for (uint32_t i = threadIdx.x; i < kStepsHeld && i < program.stepCount; i += kThreads)
    block.steps[i] = program.steps[i];
  for (uint32_t i = threadIdx.x; i < program.inCount; i += kThreads)
    block.ins[i] = seat.recvEnds[seat.endIndex(work.protocol, channel, program.inPeers[i])];
  for (uint32_t i = threadIdx.x; i < program.outCount; i += kThreads)
    block.outs[i] = seat.sendEnds[seat.endIndex(work.protocol, channel, program.outPeers[i])];
  if (threadIdx.x == 0) {
    const uint32_t operation = seat.operations[channel];
    block.channel = work.layout.channel = channel;
    block.stop = 0;
    block.iteration = block.waitedLong = 0;
    block.waitingFor = kNobody;
    block.heldFrom = 0;
    block.directSlots = 0;
    block.rounds = work.layout.rounds();
    block.iterations = static_cast<uint32_t>(kernels::iterationsOf(block.rounds, program.maxLag));
    if (work.factorAt != nullptr) memcpy(&work.arithmetic.factor, work.factorAt, sizeOf(work.arithmetic.type));
    block.fingerprint = work.fingerprint;
    block.fingerprint.operation = operation;
  }
  __syncthreads();
  if (work.peerWritable.any()) openOutput(block);
}

// After the last step: the thread that settled an end may be another one than writes its counter back.
__device__ inline void end(Block& block) {
  __syncthreads();
  const DeviceComm& seat = block.work.seat;
  const Program& program = block.work.program;
  const Protocol protocol = block.work.protocol;
  for (uint32_t i = threadIdx.x; i < program.inCount; i += kThreads)
    seat.recvEnds[seat.endIndex(protocol, block.channel, program.inPeers[i])].passed = block.ins[i].passed;
  for (uint32_t i = threadIdx.x; i < program.outCount; i += kThreads) {
    End& there = seat.sendEnds[seat.endIndex(protocol, block.channel, program.outPeers[i])];
    there.passed = block.outs[i].passed;
    there.released = block.outs[i].released;
  }
  if (threadIdx.x != 0) return;
  seat.operations[block.channel] = block.fingerprint.operation + 1;
  seat.directSlots[block.channel] += block.directSlots;
  tellProgress(block, block.iterations, block.fingerprint.operation + 1);
}

template <class Protocol, class Arithmetic>
__device__ void runWork(const KernelWork& work) {
  Block& block = blockShared<Block>();
  begin(block, work);
  if (!runSteps<Protocol, Arithmetic>(block) || !tookAll(block)) return;
  if (block.work.peerReadable.any() && !awaitReaders(block)) return;
  end(block);
}

// The arithmetic of a kernel: of one hot type, or of all.
template <class Element>
struct HotSum {
  template <class Visit>
  static __device__ void with(DataType, Visit visit) {
    visit(SumMath<Element>());
  }
};
struct Anything {
  template <class Visit>
  static __device__ void with(DataType type, Visit visit) {
    withAnyMath(type, visit);
  }
};
struct Nothing {  // collectives that only move data
  template <class Visit>
  static __device__ void with(DataType, Visit) {}
};

}  // namespace tutti::cuda
