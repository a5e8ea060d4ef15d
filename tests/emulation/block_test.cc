// The threads of a block: where they are, how they meet, and what is said when they do not.
#include <algorithm>
#include <numeric>
#include <vector>

#include "emulation/emulation_fixture.h"

namespace tutti::emulation {
namespace {

using BlockTest = EmulationTest;

__global__ void writeIndices(unsigned* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}

TEST_F(BlockTest, threadsKnowWhereTheyAre) {
  Pinned<unsigned> out(6 * 24);
  ASSERT_EQ(launch(writeIndices, dim3(3, 1, 2), dim3(4, 3, 2), 0, nullptr, out.data()), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (unsigned i = 0; i < 6 * 24; ++i) EXPECT_EQ(out[i], i / 24 * 1000 + i % 24);
}

__global__ void sumByHalves(const int* in, int* out) {
  int* shared = reinterpret_cast<int*>(dynamicShared());
  shared[threadIdx.x] = in[threadIdx.x];
  for (unsigned width = blockDim.x / 2; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x < width) shared[threadIdx.x] += shared[threadIdx.x + width];
  }
  if (threadIdx.x == 0) *out = shared[0];
}

TEST_F(BlockTest, barriersOrderTheAccessesToSharedMemory) {
  Pinned<int> in(256), out(1);
  std::iota(in.begin(), in.end(), 1);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    setSeed(seed);
    ASSERT_EQ(launch(sumByHalves, 1, 256, 256 * sizeof(int), nullptr, in.data(), out.data()), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(out[0], 256 * 257 / 2);
  }
}

__global__ void recordOrder(unsigned* counter, unsigned* order) { order[(*counter)++] = threadIdx.x; }

std::vector<unsigned> orderOf(uint64_t seed) {
  Pinned<unsigned> counter(1), order(64);
  setSeed(seed);
  EXPECT_EQ(launch(recordOrder, 1, 64, 0, nullptr, counter.data(), order.data()), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return {order.begin(), order.end()};
}

TEST_F(BlockTest, theSeedDecidesTheOrderOfThreads) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the kernel races on purpose";
#endif
  const auto first = orderOf(1);
  EXPECT_EQ(orderOf(1), first);
  EXPECT_NE(orderOf(2), first);
  auto sorted = first;
  std::sort(sorted.begin(), sorted.end());
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(sorted[i], i);
}

struct Tile {
  unsigned char bytes[96];
};
struct Other;

__global__ void copyShared(unsigned char* out) {
  auto& tile = blockShared<Tile>();
  auto& other = blockShared<Tile, Other>();
  for (unsigned i = threadIdx.x; i < 96; i += blockDim.x) {
    out[i] = tile.bytes[i];
    out[96 + i] = other.bytes[i];
    out[192 + i] = static_cast<unsigned char>(dynamicShared()[i]);
  }
  __syncthreads();
  if (threadIdx.x == 0)
    std::fill_n(tile.bytes, 96, 1), std::fill_n(other.bytes, 96, 2), dynamicShared()[5] = std::byte{3};
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 96; i += blockDim.x) out[i] += tile.bytes[i] == 1 && other.bytes[i] == 2;
}

TEST_F(BlockTest, sharedMemoryStartsPoisonedInEveryBlock) {
  Pinned<unsigned char> out(3 * 96);
  for (int launches = 0; launches < 2; ++launches) {
    ASSERT_EQ(launch(copyShared, 1, 64, 96, nullptr, out.data()), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(std::count(out.begin(), out.begin() + 96, 0xCC), 96);  // the poison, and one for what was seen later
    EXPECT_EQ(std::count(out.begin() + 96, out.end(), 0xCB), 192);
  }
}

__global__ void countVotes(int* out) {
  const int odd = threadIdx.x % 2, less = threadIdx.x < 40;
  const int count = __syncthreads_count(odd), any = __syncthreads_or(threadIdx.x == 7), none = __syncthreads_or(0);
  const int all = __syncthreads_and(1), notAll = __syncthreads_and(less);
  out[threadIdx.x] = count * 10000 + any * 1000 + none * 100 + all * 10 + notAll;
}

TEST_F(BlockTest, barriersCountVotes) {
  Pinned<int> out(48);
  ASSERT_EQ(launch(countVotes, 1, 48, 0, nullptr, out.data()), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(std::count(out.begin(), out.end(), 24 * 10000 + 1000 + 10), 48);
}

__global__ void barrierInBranch() {
  if (threadIdx.x < 40)
    __syncthreads();
  else
    __syncthreads();
}

__global__ void barrierForSome() {
  if (threadIdx.x != 33) __syncthreads();
}

__global__ void barrierAgainstWarp() {
  if (threadIdx.x == 0)
    __syncthreads();
  else
    __syncwarp();
}

TEST_F(BlockTest, divergentBarriersAreReported) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    setSeed(seed);
    ASSERT_EQ(launch(barrierInBranch, 1, 64, 0, nullptr), cudaSuccess);
    expectReport({"barrierInBranch", "block (0,0,0)", "divergent __syncthreads", "block_test.cc"});
    // Whether the thread returns before the others come or while they wait.
    ASSERT_EQ(launch(barrierForSome, 1, 64, 0, nullptr), cudaSuccess);
    expectReport({"barrierForSome", "return", "__syncthreads", "every thread of the block"});
    ASSERT_EQ(launch(barrierAgainstWarp, 1, 32, 0, nullptr), cudaSuccess);
    expectReport({"barrierAgainstWarp", "deadlock", "__syncthreads", "__syncwarp", "seed " + std::to_string(seed)});
  }
}

__global__ void misaligned(char* memory) { storeRelease(reinterpret_cast<uint64_t*>(memory + 4), 1); }
__global__ void throwing() { throw std::runtime_error("no such thing on a GPU"); }

TEST_F(BlockTest, otherMistakesAreReported) {
  Pinned<uint64_t> memory(2);
  ASSERT_EQ(launch(misaligned, 1, 1, 0, nullptr, reinterpret_cast<char*>(memory.data())), cudaSuccess);
  expectReport({"misaligned address", "thread (0,0,0)"});
  ASSERT_EQ(launch(throwing, dim3(1, 2), 1, 0, nullptr), cudaSuccess);
  expectReport({"throwing", "no such thing on a GPU"});
}

// A failure ends what else runs there, as on a GPU; otherwise it would spin for ever.
__global__ void spin(const uint32_t* flag) {
  while (loadRelaxed(flag) == 0) {
  }
}

TEST_F(BlockTest, aFailureEndsTheDevicesOtherKernels) {
  Pinned<uint32_t> flag(1);
  TestStream first, second;
  ASSERT_EQ(launch(spin, 2, 32, 0, first, flag.data()), cudaSuccess);
  ASSERT_EQ(launch(throwing, 1, 1, 0, second), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(first), cudaErrorLaunchFailure);
  EXPECT_EQ(launch(spin, 2, 32, 0, first, flag.data()), cudaErrorLaunchFailure);
  expectReport({"throwing"});
}

__global__ void addAtomically(unsigned* sum, float* floats, unsigned long long* largest, unsigned* bits) {
  atomicAdd(sum, 1);
  atomicAdd_system(floats, 0.5f);
  atomicMax(largest, blockIdx.x * 100 + threadIdx.x);
  atomicOr(bits, 1u << threadIdx.x % 32);
  __threadfence_system();
}

TEST_F(BlockTest, atomicsOfAllBlocksAddUp) {
  Pinned<unsigned> sum(1), bits(1);
  Pinned<float> floats(1);
  Pinned<unsigned long long> largest(1);
  ASSERT_EQ(launch(addAtomically, 8, 48, 0, nullptr, sum.data(), floats.data(), largest.data(), bits.data()),
            cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(sum[0], 8u * 48);
  EXPECT_EQ(floats[0], 8 * 48 * 0.5f);
  EXPECT_EQ(largest[0], 747u);
  EXPECT_EQ(bits[0], ~0u);
}

__global__ void exchangeAtomically(unsigned* word, unsigned* out) {
  out[0] = atomicCAS(word, 5, 6);
  out[1] = atomicCAS(word, 5, 7);
  out[2] = atomicExch(word, 8);
  out[3] = atomicMin(word, 3);
  out[4] = atomicAnd(word, 2);
  out[5] = atomicSub(word, 3);
}

TEST_F(BlockTest, atomicsGiveTheOldValue) {
  Pinned<unsigned> word(1, 5), out(6);
  ASSERT_EQ(launch(exchangeAtomically, 1, 1, 0, nullptr, word.data(), out.data()), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const std::vector<unsigned> want{5, 6, 6, 8, 3, 2};
  EXPECT_EQ(std::vector<unsigned>(out.begin(), out.end()), want);
  EXPECT_EQ(word[0], ~0u);
}

}  // namespace
}  // namespace tutti::emulation
