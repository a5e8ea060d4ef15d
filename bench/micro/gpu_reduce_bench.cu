// The sum of k buffers on a GPU by the code that collectives move data with, against what the GPU's memory gives: a
// copy by CUDA itself, in the same run. And against CUB, for two buffers. Rates count every byte that is read and
// written.
//
// usage: gpu_reduce_bench [MIB] [--variants]     (size of a buffer; default: 256)
//
// With --variants also by how many words, and of how many sources at once, a thread has under way, by a block for each
// multiprocessor and by fewer, as collectives have.
#include <cuda_runtime.h>
#if __has_include(<cub/device/device_transform.cuh>)
#include <cub/device/device_transform.cuh>
#define TUTTI_HAS_CUB_TRANSFORM
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "kernels/cuda/hot_elements.cuh"
#include "kernels/cuda/simple.cuh"

namespace tutti::cuda {
namespace {

constexpr int kMaxSources = 8;
// What a slot of a link may hold: collectives move about so much at a time.
constexpr uint32_t kRunBytes = 512 << 10;

struct Operands {
  const std::byte* sources[kMaxSources];
  std::byte* to;
  size_t bytes;
  uint32_t count;
};

// A run, as a protocol moves it.
template <class Math>
struct AsItIs {
  static __device__ void move(Block& block, const schedule::Step& step, const Run& run) {
    SimpleProtocol::move<Math>(block, step, run, Reduction());
  }
};

template <class Mover>
__global__ void __launch_bounds__(kThreads, 1) sumByTutti(const __grid_constant__ Operands operands) {
  Block& block = blockShared<Block>();
  if (threadIdx.x < operands.count)
    block.places[threadIdx.x] = {const_cast<std::byte*>(operands.sources[threadIdx.x]), PlaceKind::kInput};
  if (threadIdx.x == 0) block.places[operands.count] = {operands.to, PlaceKind::kOutput};
  __syncthreads();
  schedule::Step step;
  step.fromCount = static_cast<uint16_t>(operands.count);
  step.toCount = 1;
  for (size_t at = size_t{blockIdx.x} * kRunBytes; at < operands.bytes; at += size_t{gridDim.x} * kRunBytes) {
    const size_t left = operands.bytes - at;
    const Run run{at, at, 0, left < kRunBytes ? static_cast<uint32_t>(left) : kRunBytes};
    Mover::move(block, step, run);
  }
}

// The same arithmetic with other loads under way.
template <class Math, uint32_t kWords>
struct Deep : Math {
  static constexpr uint32_t kDepth = kWords, kSources = 1;
  static __device__ void move(Block& block, const schedule::Step& step, const Run& run) {
    SimpleProtocol::move<Deep>(block, step, run, Reduction());
  }
};

// What collectives do not do: the words of several sources are all under way before the first is used.
template <class Math, uint32_t kWords, uint32_t kAbreast>
struct Abreast : Math {
  static constexpr uint32_t kDepth = kWords, kSources = kAbreast;
  static constexpr uint32_t kStride = kThreads * sizeof(Pack);
  static __device__ void move(Block& block, const schedule::Step& step, const Run& run) {
    for (uint32_t at = threadIdx.x * sizeof(Pack); at < run.bytes; at += kWords * kStride) {
      typename Math::template UnpackedOf<Pack> groups[kWords];
      for (uint32_t source = 0; source < step.fromCount; source += kAbreast) take(block, step, run, at, source, groups);
      std::byte* const to = placeOf(block.places[step.fromCount], run, SimpleProtocol::kGrain) + at;
#pragma unroll
      for (uint32_t u = 0; u < kWords; ++u)
        if (at + u * kStride < run.bytes)
          *reinterpret_cast<Pack*>(to + u * kStride) = Math::template store<Pack>(Reduction(), groups[u]);
    }
  }
  template <class Groups>
  static __device__ void take(Block& block, const schedule::Step& step, const Run& run, uint32_t at, uint32_t source,
                              Groups& groups) {
    Pack words[kAbreast][kWords];
#pragma unroll
    for (uint32_t i = 0; i < kAbreast; ++i) {
      if (source + i >= step.fromCount) continue;
      const std::byte* const from = placeOf(block.places[source + i], run, SimpleProtocol::kGrain) + at;
#pragma unroll
      for (uint32_t u = 0; u < kWords; ++u)
        if (at + u * kStride < run.bytes) words[i][u] = *reinterpret_cast<const Pack*>(from + u * kStride);
    }
#pragma unroll
    for (uint32_t i = 0; i < kAbreast; ++i) {
      if (source + i >= step.fromCount) continue;
#pragma unroll
      for (uint32_t u = 0; u < kWords; ++u) {
        const auto more = Math::load(Reduction(), words[i][u], static_cast<int>(source + i));
        if (source + i == 0)
          groups[u] = more;
        else
          Math::fold(Reduction(), groups[u], more);
      }
    }
  }
};

// Zeros and ones, so that no type rounds any sum of them.
__device__ float inputAt(size_t i, uint32_t source) { return static_cast<float>((i * 7 + source * 3) % 5 < 2); }

template <class Element>
__global__ void fill(typename Element::Storage* to, size_t count, uint32_t source) {
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    to[i] = Element::store(inputAt(i, source));
}

template <class Element>
__global__ void countWrong(const typename Element::Storage* sums, size_t count, uint32_t sources,
                           unsigned long long* wrong) {
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
    float sum = 0;
    for (uint32_t s = 0; s < sources; ++s) sum += inputAt(i, s);
    if (Element::load(sums[i]) != sum) atomicAdd(wrong, 1ull);
  }
}

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "gpu_reduce_bench: %s: %s: %s\n", what, cudaGetErrorName(result), cudaGetErrorString(result));
  std::exit(EXIT_FAILURE);
}

// Seconds that one of `work` takes, launched back to back: the median of several rounds.
template <class Work>
double secondsOf(Work work) {
  constexpr int kWarmUps = 3, kRounds = 9, kEach = 5;
  for (int i = 0; i < kWarmUps; ++i) work();
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "making an event");
  check(cudaEventCreate(&end), "making an event");
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    check(cudaEventRecord(begin), "marking the begin");
    for (int i = 0; i < kEach; ++i) work();
    check(cudaGetLastError(), "launching");
    check(cudaEventRecord(end), "marking the end");
    check(cudaEventSynchronize(end), "waiting");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "reading the time");
    rounds.push_back(milliseconds * 1e-3 / kEach);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2];
}

class Bench {
 public:
  explicit Bench(size_t bytes) {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0), "asking for the GPU's properties");
    blocks_ = static_cast<uint32_t>(properties.multiProcessorCount);
    operands_.bytes = bytes;
    for (auto& source : operands_.sources) source = allocate(bytes);
    operands_.to = allocate(bytes);
    wrong_ = reinterpret_cast<unsigned long long*>(allocate(sizeof *wrong_));
    std::printf("# %s, %u blocks of %u threads, buffers of %zu MiB\n", properties.name, blocks_, kThreads, bytes >> 20);
  }

  // False: some result was wrong.
  bool runVariants() {
    std::printf("%8s %6s %8s %8s %8s %10s %9s\n", "variant", "words", "at once", "sources", "blocks", "GB/s",
                "of copy");
    fillAll<HotElement<DataType::kFloat32>>();
    variantsOf<CopyMath, HotElement<DataType::kFloat32>>("copy", {1});
    variantsOf<SumMath<HotElement<DataType::kFloat32>>, HotElement<DataType::kFloat32>>("fp32", {2, 3, 8});
    fillAll<HotElement<DataType::kBfloat16>>();
    variantsOf<SumMath<HotElement<DataType::kBfloat16>>, HotElement<DataType::kBfloat16>>("bf16", {2, 3, 8});
    fillAll<HotElement<DataType::kFloat16>>();
    variantsOf<SumMath<HotElement<DataType::kFloat16>>, HotElement<DataType::kFloat16>>("fp16", {2, 3, 8});
    return right_;
  }

  // False: some result was wrong.
  bool run() {
    const double seconds = secondsOf([&] {
      check(cudaMemcpyAsync(operands_.to, operands_.sources[0], operands_.bytes, cudaMemcpyDeviceToDevice), "copying");
    });
    ceiling_ = rate(1, seconds);
    std::printf("# cudaMemcpyAsync from device to device: %.1f GB/s, the ceiling\n", ceiling_);
    std::printf("%8s %8s %10s %10s %9s %10s %9s\n", "type", "sources", "us", "GB/s", "of copy", "CUB GB/s", "of copy");
    ofType<HotElement<DataType::kFloat32>>("fp32");
    ofType<HotElement<DataType::kBfloat16>>("bf16");
    ofType<HotElement<DataType::kFloat16>>("fp16");
    return right_;
  }

 private:
  static std::byte* allocate(size_t bytes) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes), "allocating");
    return static_cast<std::byte*>(memory);
  }

  double rate(uint32_t sources, double seconds) const {
    return static_cast<double>(operands_.bytes) * (sources + 1) / seconds * 1e-9;
  }

  template <class Math, class Element>
  void variantsOf(const char* name, std::initializer_list<uint32_t> sources) {
    for (const uint32_t count : sources) {
      operands_.count = count;
      for (const uint32_t blocks : {blocks_, 32u}) {
        variant<Deep<Math, 2>, Element>(name, blocks);
        variant<Deep<Math, 4>, Element>(name, blocks);
        variant<Deep<Math, 8>, Element>(name, blocks);
        if (count == 1) continue;
        variant<Abreast<Math, 2, 2>, Element>(name, blocks);
        variant<Abreast<Math, 3, 2>, Element>(name, blocks);
        variant<Abreast<Math, 4, 2>, Element>(name, blocks);
        if (count > 2) variant<Abreast<Math, 2, 4>, Element>(name, blocks);
      }
    }
  }

  template <class Mover, class Element>
  void variant(const char* name, uint32_t blocks) {
    check(cudaMemset(operands_.to, 0xff, operands_.bytes), "clearing");
    const double seconds = secondsOf([&] { sumByTutti<Mover><<<blocks, kThreads>>>(operands_); });
    const double gbs = rate(operands_.count, seconds);
    std::printf("%8s %6u %8u %8u %8u %10.1f %8.1f%%", name, Mover::kDepth, Mover::kSources, operands_.count, blocks,
                gbs, gbs / ceiling_ * 100);
    verify<Element>(operands_.bytes / sizeof(typename Element::Storage));
    std::printf("\n");
  }

  template <class Element>
  void fillAll() {
    using Storage = typename Element::Storage;
    for (uint32_t s = 0; s < kMaxSources; ++s)
      fill<Element><<<blocks_ * 4, 256>>>(reinterpret_cast<Storage*>(const_cast<std::byte*>(operands_.sources[s])),
                                          operands_.bytes / sizeof(Storage), s);
  }

  template <class Element>
  void ofType(const char* type) {
    const size_t count = operands_.bytes / sizeof(typename Element::Storage);
    fillAll<Element>();
    for (operands_.count = 1; operands_.count <= kMaxSources; ++operands_.count) line<Element>(type, count);
  }

  // One source is moved as it is, as in a collective.
  template <class Element>
  void line(const char* type, size_t count) {
    check(cudaMemset(operands_.to, 0xff, operands_.bytes), "clearing");
    const double seconds = secondsOf([&] {
      if (operands_.count == 1)
        sumByTutti<AsItIs<CopyMath>><<<blocks_, kThreads>>>(operands_);
      else
        sumByTutti<AsItIs<SumMath<Element>>><<<blocks_, kThreads>>>(operands_);
    });
    const double gbs = rate(operands_.count, seconds);
    std::printf("%8s %8u %10.1f %10.1f %8.1f%%", type, operands_.count, seconds * 1e6, gbs, gbs / ceiling_ * 100);
    verify<Element>(count);
    byCub<Element>(count);
    std::printf("\n");
  }

  template <class Element>
  void verify(size_t count) {
    unsigned long long wrong = 0;
    check(cudaMemset(wrong_, 0, sizeof wrong), "clearing");
    countWrong<Element><<<blocks_ * 4, 256>>>(reinterpret_cast<const typename Element::Storage*>(operands_.to), count,
                                              operands_.count, wrong_);
    check(cudaMemcpy(&wrong, wrong_, sizeof wrong, cudaMemcpyDeviceToHost), "reading the count");
    if (wrong == 0) return;
    right_ = false;
    std::printf("  %llu WRONG", wrong);
  }

  template <class Element>
  void byCub(size_t count);

  uint32_t blocks_ = 0;
  Operands operands_{};
  unsigned long long* wrong_ = nullptr;
  double ceiling_ = 0;
  bool right_ = true;
};

#ifdef TUTTI_HAS_CUB_TRANSFORM

template <class Element>
struct Plus {
  using Storage = typename Element::Storage;
  __device__ Storage operator()(Storage a, Storage b) const {
    return Element::store(Element::load(a) + Element::load(b));
  }
};

template <class Element>
void Bench::byCub(size_t count) {
  if (operands_.count != 2) return;
  using Storage = typename Element::Storage;
  const auto* const a = reinterpret_cast<const Storage*>(operands_.sources[0]);
  const auto* const b = reinterpret_cast<const Storage*>(operands_.sources[1]);
  auto* const to = reinterpret_cast<Storage*>(operands_.to);
  const double seconds = secondsOf([&] {
    check(cub::DeviceTransform::Transform(::cuda::std::make_tuple(a, b), to, count, Plus<Element>()), "CUB");
  });
  const double gbs = rate(2, seconds);
  std::printf(" %10.1f %8.1f%%", gbs, gbs / ceiling_ * 100);
}

#else

template <class Element>
void Bench::byCub(size_t) {}

#endif

}  // namespace
}  // namespace tutti::cuda

int main(int argc, char** argv) {
  const bool variants = argc > 1 && std::strcmp(argv[argc - 1], "--variants") == 0;
  const bool sized = argc - variants > 1;
  const size_t mebibytes = sized ? std::strtoul(argv[1], nullptr, 10) : 256;
  if (mebibytes == 0 || mebibytes > 4096 || argc - variants > 2) {
    std::fprintf(stderr,
                 "usage: gpu_reduce_bench [MIB] [--variants]     (size of a buffer, 1 to 4096; default: 256)\n");
    return EXIT_FAILURE;
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU: %s\n", cudaGetErrorString(cudaGetLastError()));
    return 77;
  }
  tutti::cuda::Bench bench(mebibytes << 20);
  const bool right = bench.run() && (!variants || bench.runVariants());
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
