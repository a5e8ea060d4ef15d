// Where the time of a short collective goes on a GPU: an all-reduce of 8 bytes between two ranks, each a block of one
// kernel, beside kernels that do a part of that; what single loads, stores and fences cost; and what each phase of the
// collective's kernel takes. All of it by the collectives' own code.
//
// usage: gpu_latency_bench
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#include "kernels/cuda/hot_kernels.cuh"

namespace tutti::cuda {
namespace {

constexpr uint32_t kRanks = 2, kDepth = 8, kSlotBytes = 4096;
constexpr int kNodes = 100, kWarmUps = 5, kRounds = 20;

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "gpu_latency_bench: %s: %s: %s\n", what, cudaGetErrorName(result), cudaGetErrorString(result));
  std::exit(EXIT_FAILURE);
}

template <class T>
T* onGpu(const std::vector<T>& values) {
  T* memory = nullptr;
  check(cudaMalloc(&memory, values.size() * sizeof(T)), "allocating");
  check(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "copying");
  return memory;
}
template <class T>
T* onHost() {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, sizeof(T), cudaHostAllocMapped), "allocating pinned memory");
  return new (memory) T();
}

// Two ranks of one GPU and the links between them, as a communicator lays them out.
class Ranks {
 public:
  explicit Ranks(Protocol protocol) : protocol_(protocol) {
    for (auto& fifo : fifos_) {
      const size_t bytes = link::Fifo::bytesFor(kSlotBytes, kDepth);
      fifo = link::Fifo::over(onGpu(std::vector<std::byte>(bytes)), kSlotBytes, kDepth);
    }
    for (uint32_t rank = 0; rank < kRanks; ++rank) launch_.works[rank] = workOf(rank);
    launch_.count = kRanks;
  }

  // `steps`: none, and nothing is done but what every call begins and ends with.
  KernelLaunch launch(bool steps) const {
    KernelLaunch launch = launch_;
    if (!steps)
      for (auto& work : launch.works) work.program.stepCount = work.program.inCount = work.program.outCount = 0;
    return launch;
  }
  bool right() const {
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      float sums[2] = {};
      check(cudaMemcpy(sums, launch_.works[rank].output, sizeof sums, cudaMemcpyDeviceToHost), "reading the result");
      if (sums[0] != 3 || sums[1] != 3) return false;
    }
    return true;
  }

 private:
  using Operand = schedule::Operand;

  // An end a protocol and peer; `mine`: of the FIFO that leads there.
  End* endsOf(uint32_t rank, bool sends) const {
    std::vector<End> ends(static_cast<size_t>(kProtocols) * kRanks);
    for (End& end : ends) end.fifo = fifos_[sends ? rank : 1 - rank];
    return onGpu(ends);
  }
  DeviceComm seatOf(uint32_t rank) const {
    DeviceComm seat;
    seat.sendEnds = endsOf(rank, true);
    seat.recvEnds = endsOf(rank, false);
    seat.operations = onGpu(std::vector<uint32_t>(1));
    seat.directSlots = onGpu(std::vector<uint32_t>(1));
    seat.reporting = onGpu(std::vector<uint32_t>(1));
    seat.abort = onHost<uint32_t>();
    seat.report = onHost<Report>();
    seat.progress = onHost<Progress>();
    seat.deadlineNs = 2'000'000'000;
    seat.size = kRanks;
    return seat;
  }
  // One-shot: the input to the peer, then both inputs to the output.
  static Program programOf(uint32_t rank) {
    Program program;
    program.operands = onGpu(std::vector<Operand>{Operand::input(), Operand::link(0), Operand::input(),
                                                  Operand::link(0), Operand::output()});
    const schedule::Step send{.fromBegin = 0, .toBegin = 1, .fromCount = 1, .toCount = 1};
    const schedule::Step sum{.fromBegin = 2, .toBegin = 4, .fromCount = 2, .toCount = 1, .flags = schedule::kFinalise};
    program.steps = onGpu(std::vector<schedule::Step>{send, sum});
    program.inPeers = program.outPeers = onGpu(std::vector<int>{static_cast<int>(1 - rank)});
    program.stepCount = 2;
    program.inCount = program.outCount = 1;
    return program;
  }
  KernelWork workOf(uint32_t rank) const {
    KernelWork work;
    work.seat = seatOf(rank);
    work.program = programOf(rank);
    work.input = reinterpret_cast<const std::byte*>(onGpu(std::vector<float>(2, static_cast<float>(rank + 1))));
    work.output = reinterpret_cast<std::byte*>(onGpu(std::vector<float>(2)));
    work.layout.total = work.layout.stride = 2;
    work.layout.chunk = 256;
    work.fingerprint.kindAndType = static_cast<uint8_t>(static_cast<int>(Collective::kAllReduce) << 4);
    work.firstBlock = rank;
    work.protocol = protocol_;
    return work;
  }

  Protocol protocol_;
  link::Fifo fifos_[kRanks];
  KernelLaunch launch_;
};

// --- kernels by themselves, in a graph ---

struct Words {
  uint64_t *host, *here;
};
__global__ void nothing(const __grid_constant__ Words) {}
__global__ void __launch_bounds__(kThreads, 1) nothingOfALaunch(const __grid_constant__ KernelLaunch) {}
__global__ void storesToHost(const __grid_constant__ Words words) {
  if (threadIdx.x == 0) storeRelaxed(words.host, 1);
}
__global__ void releases(const __grid_constant__ Words words) {
  if (threadIdx.x == 0) storeRelease(words.here, 1);
}
__global__ void storesToHostAndReleases(const __grid_constant__ Words words) {
  if (threadIdx.x != 0) return;
  storeRelaxed(words.host, 1);
  storeRelease(words.here, 1);
}

// Microseconds that each of kNodes kernels takes, one behind the other in a graph: the median of several launches.
template <class Argument>
double inGraph(void (*kernel)(const Argument), uint32_t blocks, uint32_t threads, const Argument& argument) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  check(cudaStreamCreate(&stream), "making a stream");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a capture");
  for (int i = 0; i < kNodes; ++i) check(launchKernel(kernel, blocks, threads, stream, argument), "launching");
  check(cudaStreamEndCapture(stream, &graph), "ending a capture");
  check(cudaGraphInstantiate(&ready, graph, 0), "instantiating a graph");
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "making an event");
  check(cudaEventCreate(&end), "making an event");
  std::vector<double> rounds;
  for (int round = 0; round < kWarmUps + kRounds; ++round) {
    check(cudaEventRecord(begin, stream), "marking the begin");
    check(cudaGraphLaunch(ready, stream), "launching a graph");
    check(cudaEventRecord(end, stream), "marking the end");
    check(cudaEventSynchronize(end), "waiting");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "reading the time");
    if (round >= kWarmUps) rounds.push_back(milliseconds * 1e3 / kNodes);
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2];
}

void row(const char* what, double value, const char* unit) { std::printf("%-58s %9.3f %s\n", what, value, unit); }

using FloatSum = HotSum<HotElement<DataType::kFloat32>>;

template <class P>
bool ofProtocol(const char* name) {
  const Ranks ranks(P::kProtocol);
  char text[80];
  std::snprintf(text, sizeof text, "in a graph: a call without steps, %s", name);
  row(text, inGraph(tuttiCollective<P, FloatSum>, kRanks, kThreads, ranks.launch(false)), "us");
  std::snprintf(text, sizeof text, "in a graph: an all-reduce of 8 B, %s", name);
  row(text, inGraph(tuttiCollective<P, FloatSum>, kRanks, kThreads, ranks.launch(true)), "us");
  if (ranks.right()) return true;
  std::printf("WRONG: an all-reduce, %s\n", name);
  return false;
}

void nodes(const Words& words, const KernelLaunch& launch) {
  row("in a graph: nothing, 1 block of 32", inGraph(nothing, 1, 32, words), "us");
  row("in a graph: nothing, 2 blocks of 512", inGraph(nothing, 2, kThreads, words), "us");
  row("in a graph: nothing, 16 blocks of 512", inGraph(nothing, 16, kThreads, words), "us");
  row("in a graph: nothing, 2 blocks of 512, 4 KB of arguments", inGraph(nothingOfALaunch, 2, kThreads, launch), "us");
  row("in a graph: a store to the host", inGraph(storesToHost, 2, kThreads, words), "us");
  row("in a graph: a release on the GPU", inGraph(releases, 2, kThreads, words), "us");
  row("in a graph: a store to the host, a release on the GPU", inGraph(storesToHostAndReleases, 2, kThreads, words),
      "us");
}

// --- one operation after the other, of one thread ---

enum class Op { kPeek, kAcquire, kAcquireGpu, kLine, kRelaxed, kRelease, kReleaseGpu, kHostRelease, kHost, kTimer };

__device__ uint64_t once(Op op, const Words& words, uint64_t value) {
  switch (op) {
    case Op::kPeek:
      return peek(words.here);
    case Op::kAcquire:
      return loadAcquire(words.here);
    case Op::kAcquireGpu:
      asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(words.here) : "memory");
      return value;
    case Op::kLine:
      return loadLine(reinterpret_cast<const std::byte*>(words.here)).flag1;
    case Op::kRelaxed:
      storeRelaxed(words.here, value);
      return 0;
    case Op::kHostRelease:
      storeRelaxed(words.host, value);
      [[fallthrough]];
    case Op::kRelease:
      storeRelease(words.here, value);
      return 0;
    case Op::kReleaseGpu:
      asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(words.here), "l"(value) : "memory");
      return 0;
    case Op::kHost:
      storeRelaxed(words.host, value);
      return 0;
    default:
      return nowNs() & 0;
  }
}

constexpr uint64_t kTimes = 1000;

struct Chain {
  Words words;
  uint64_t* took;
};
// Each waits for what the one before it has read.
template <Op kOp>
__global__ void chain(const __grid_constant__ Chain of) {
  const uint64_t begin = nowNs();
  uint64_t value = 0;
  for (uint64_t i = 0; i < kTimes; ++i) {
    Words words = of.words;
    words.here += value;
    value = once(kOp, words, 0);
  }
  *of.took = nowNs() - begin + value;
}

template <Op kOp>
void chainOf(const char* what, const Words& words) {
  auto* const took = onHost<uint64_t>();
  check(cudaMemset(words.here, 0, 64), "clearing");
  for (int i = 0; i < 2; ++i) check(launchKernel(chain<kOp>, 1, 1, nullptr, Chain{words, took}), "launching");
  check(cudaDeviceSynchronize(), "waiting");
  row(what, static_cast<double>(*took) / kTimes, "ns");
}

void operations(const Words& words) {
  chainOf<Op::kPeek>("one thread: a relaxed load", words);
  chainOf<Op::kLine>("one thread: a load of a line of LL", words);
  chainOf<Op::kAcquireGpu>("one thread: an acquire, of the GPU's scope", words);
  chainOf<Op::kAcquire>("one thread: an acquire, of the system's scope", words);
  chainOf<Op::kRelaxed>("one thread: a relaxed store", words);
  chainOf<Op::kReleaseGpu>("one thread: a release, of the GPU's scope", words);
  chainOf<Op::kRelease>("one thread: a release, of the system's scope", words);
  chainOf<Op::kHostRelease>("one thread: a store to the host, such a release", words);
  chainOf<Op::kHost>("one thread: a store to the host", words);
  chainOf<Op::kTimer>("one thread: a look at the clock", words);
}

// --- from one block to another and back ---

template <bool kLines>
__global__ void pingPong(const __grid_constant__ Chain of) {
  const uint64_t begin = nowNs();
  uint64_t* const mine = of.words.here + blockIdx.x * 32;
  uint64_t* const other = of.words.here + (1 - blockIdx.x) * 32;
  const auto say = [&](uint64_t number) {
    const auto flag = static_cast<uint32_t>(number);
    if constexpr (kLines)
      storeLine(reinterpret_cast<std::byte*>(other), {0, flag, 0, flag});
    else
      storeRelease(other, number);
  };
  const auto await = [&](uint64_t number) {
    if constexpr (kLines)
      while (loadLine(reinterpret_cast<const std::byte*>(mine)).flag2 != static_cast<uint32_t>(number)) continue;
    else
      while (loadAcquire(mine) != number) continue;
  };
  for (uint64_t i = 1; i <= kTimes; ++i) {
    if (blockIdx.x == 0) say(i);
    await(i);
    if (blockIdx.x == 1) say(i);
  }
  if (blockIdx.x == 0) *of.took = nowNs() - begin;
}

template <bool kLines>
void hop(const char* what, const Words& words) {
  auto* const took = onHost<uint64_t>();
  check(cudaMemset(words.here, 0, 1024), "clearing");
  check(launchKernel(pingPong<kLines>, 2, 1, nullptr, Chain{words, took}), "launching");
  check(cudaDeviceSynchronize(), "waiting");
  row(what, static_cast<double>(*took) / (2 * kTimes), "ns");
}

// --- the phases of the kernel ---

constexpr uint32_t kPhases = 5;
struct Phases {
  uint64_t* ticks;  // of all launches, by phase
  KernelLaunch launch;
};

template <class P>
__global__ void __launch_bounds__(kThreads, 1) inPhases(const __grid_constant__ Phases of) {
  long long stamps[kPhases + 1] = {clock64()};
  const KernelWork& work = findWork(of.launch);
  Block& block = blockShared<Block>();
  begin(block, work);
  stamps[1] = clock64();
  for (uint32_t s = 0; s < 2; ++s) {
    if (!runStep<P, FloatSum>(block, stepAt(block, s), 0)) return;
    stamps[2 + s] = clock64();
  }
  end(block);
  stamps[4] = clock64();
  __threadfence_system();
  stamps[5] = clock64();
  if (threadIdx.x != 0 || blockIdx.x != 0) return;
  for (uint32_t i = 0; i < kPhases; ++i) of.ticks[i] += static_cast<uint64_t>(stamps[i + 1] - stamps[i]);
}

template <class P>
void phases(const char* name) {
  int kilohertz = 0;
  check(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0), "asking for the clock");
  uint64_t* const ticks = onGpu(std::vector<uint64_t>(kPhases));
  const Ranks ranks(P::kProtocol);
  const double all = inGraph(inPhases<P>, kRanks, kThreads, Phases{ticks, ranks.launch(true)});
  uint64_t sums[kPhases] = {};
  check(cudaMemcpy(sums, ticks, sizeof sums, cudaMemcpyDeviceToHost), "reading the times");
  constexpr const char* kNames[kPhases] = {"begin", "first step", "second step", "end", "a fence behind it"};
  char text[80];
  for (uint32_t i = 0; i < kPhases; ++i) {
    std::snprintf(text, sizeof text, "phases, %s: %s", name, kNames[i]);
    row(text, static_cast<double>(sums[i]) / ((kWarmUps + kRounds) * kNodes) * 1e6 / kilohertz, "ns");
  }
  std::snprintf(text, sizeof text, "phases, %s: the whole of it, in a graph", name);
  row(text, all, "us");
}

int run() {
  const Words words{onHost<uint64_t>(), onGpu(std::vector<uint64_t>(128))};
  const Ranks ranks(Protocol::kLL);
  nodes(words, ranks.launch(false));
  bool right = ofProtocol<LLProtocol>("LL");
  right = ofProtocol<SimpleProtocol>("Simple") && right;
  operations(words);
  hop<true>("a line of LL, from one block to another", words);
  hop<false>("a release, from one block to another", words);
  phases<LLProtocol>("LL");
  phases<SimpleProtocol>("Simple");
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace tutti::cuda

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU: %s\n", cudaGetErrorString(cudaGetLastError()));
    return 77;
  }
  return tutti::cuda::run();
}
