// Whether streams of one process that wait for each other hold each other up: stream i waits for a word, copies, and
// writes the word of stream i - 1. They are queued from the first to the last, of which only the last need not wait.
// Copies that went to the hardware by one queue, in the order in which they were made, would stand still for ever; and
// so says a line of this program, which then lets them go.
//
// usage: gpu_queue_probe
#include <cuda.h>
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr size_t kMostBytes = 1 << 20;
constexpr std::chrono::milliseconds kPatience(200);

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "gpu_queue_probe: %s: %s: %s\n", what, cudaGetErrorName(result), cudaGetErrorString(result));
  std::exit(EXIT_FAILURE);
}
void check(CUresult result, const char* what) { check(static_cast<cudaError_t>(result), what); }

decltype(&cuStreamBatchMemOp) batch() {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found;
  check(cudaGetDriverEntryPointByVersion("cuStreamBatchMemOp", &address, 12000, cudaEnableDefault, &found),
        "looking for cuStreamBatchMemOp");
  return reinterpret_cast<decltype(&cuStreamBatchMemOp)>(address);
}

enum class How { kFromHost, kToHost, kOnGpu, kKernelFromHost, kKernelToHost };
constexpr How kEveryHow[] = {How::kFromHost, How::kToHost, How::kOnGpu, How::kKernelFromHost, How::kKernelToHost};
constexpr const char* kNames[] = {"copy from the host", "copy to the host", "copy on the GPU", "kernel, from the host",
                                  "kernel, to the host"};

__global__ void copyBytes(std::byte* to, const std::byte* from, size_t bytes) {
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < bytes; i += size_t{gridDim.x} * blockDim.x)
    to[i] = from[i];
}

class Probe {
 public:
  explicit Probe(size_t streams) : streams_(streams) {
    void* words = nullptr;
    check(cudaHostAlloc(&words, streams * sizeof(uint64_t), cudaHostAllocMapped), "allocating pinned memory");
    words_ = static_cast<uint64_t*>(words);
    void *host = nullptr, *here = nullptr, *there = nullptr;
    check(cudaHostAlloc(&host, kMostBytes, cudaHostAllocMapped), "allocating pinned memory");
    check(cudaMalloc(&here, kMostBytes), "allocating");
    check(cudaMalloc(&there, kMostBytes), "allocating");
    host_ = static_cast<std::byte*>(host), here_ = static_cast<std::byte*>(here),
    there_ = static_cast<std::byte*>(there);
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
    for (auto& stream : streams_)
      check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, least), "making a stream");
    warmUp();
  }
  ~Probe() {
    for (const auto stream : streams_) cudaStreamDestroy(stream);
    cudaFreeHost(words_);
    cudaFreeHost(host_);
    cudaFree(here_);
    cudaFree(there_);
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  void attempt(How how, size_t bytes) {
    for (size_t i = 0; i < streams_.size(); ++i) set(i, i + 1 == streams_.size());
    for (size_t i = 0; i < streams_.size(); ++i) {
      word(i, i, true);
      move(how, bytes, streams_[i]);
      if (i > 0) word(i, i - 1, false);
    }
    const auto began = std::chrono::steady_clock::now();
    bool through = false;
    while (!through && std::chrono::steady_clock::now() - began < kPatience)
      through = cudaStreamQuery(streams_.front()) == cudaSuccess;
    for (size_t i = 0; i < streams_.size(); ++i) set(i, true);
    check(cudaDeviceSynchronize(), "waiting");
    std::printf("%-24s %8zu bytes, %2zu streams: %s\n", kNames[static_cast<int>(how)], bytes, streams_.size(),
                through ? "go through" : "STAND STILL");
  }

 private:
  // Whatever CUDA does once, and might wait for streams with, is done before a stream waits.
  void warmUp() {
    for (const How how : kEveryHow)
      for (const auto stream : streams_) move(how, kMostBytes, stream);
    check(cudaDeviceSynchronize(), "waiting");
  }
  void set(size_t i, bool value) { std::atomic_ref(words_[i]).store(value, std::memory_order_release); }
  // Queues in a stream the wait for a word, or its setting.
  void word(size_t stream, size_t i, bool waits) {
    CUstreamBatchMemOpParams params{};
    const auto address = reinterpret_cast<CUdeviceptr>(words_ + i);
    if (waits)
      params.waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_64, address, {.value64 = 1}, CU_STREAM_WAIT_VALUE_EQ, 0};
    else
      params.writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_64, address, {.value64 = 1}, CU_STREAM_WRITE_VALUE_DEFAULT, 0};
    static const auto queue = batch();
    check(queue(streams_[stream], 1, &params, 0), "queueing a word");
  }
  void move(How how, size_t bytes, cudaStream_t stream) {
    const bool fromHost = how == How::kFromHost || how == How::kKernelFromHost;
    const bool toHost = how == How::kToHost || how == How::kKernelToHost;
    const std::byte* const from = fromHost ? host_ : here_;
    std::byte* const to = toHost ? host_ : there_;
    if (how == How::kKernelFromHost || how == How::kKernelToHost)
      copyBytes<<<8, 256, 0, stream>>>(to, from, bytes);
    else
      check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "copying");
  }

  std::vector<cudaStream_t> streams_;
  uint64_t* words_ = nullptr;
  std::byte *host_ = nullptr, *here_ = nullptr, *there_ = nullptr;
};

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU: %s\n", cudaGetErrorString(cudaGetLastError()));
    return 77;
  }
  for (const size_t streams : {2, 3, 8, 16, 40}) {
    Probe probe(streams);
    for (const How how : kEveryHow)
      for (const size_t bytes : {1000, 33'000, 100'001, 1 << 20}) probe.attempt(how, bytes);
  }
  return EXIT_SUCCESS;
}
