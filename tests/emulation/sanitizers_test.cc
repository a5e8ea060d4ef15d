// The sanitizers see kernels as they would see threads: what is wrong is found, in a process that ends of it. That what
// is right passes is shown by all other tests, which run under the sanitizers too.
#include "emulation/emulation_fixture.h"
#include "emulation/other_process.h"

namespace tutti::emulation {
namespace {

using SanitizersTest = EmulationTest;

#if defined(__SANITIZE_THREAD__)
constexpr bool kThread = true, kAddress = false;
#elif defined(__SANITIZE_ADDRESS__)
constexpr bool kThread = false, kAddress = true;
#else
constexpr bool kThread = false, kAddress = false;
#endif

constexpr int kFound = 66, kKilled = -1;

int statusOf(const char* test) {
  return statusOfOtherProcess(test, {"ASAN_OPTIONS=exitcode=66", "TSAN_OPTIONS=exitcode=66:halt_on_error=1"});
}

// All blocks are there, and nothing is ordered by it. (A block that ends before another one starts comes before it.)
__device__ void gather(uint32_t* arrived) {
  atomicAdd(arrived, 1);
  while (loadRelaxed(arrived) < gridDim.x) {
  }
}

__global__ void countUp(uint32_t* arrived, unsigned* word) {
  gather(arrived);
  *word = *word + blockIdx.x + 1;
}

TEST_F(SanitizersTest, DISABLED_blocksThatRace) {
  Pinned<uint32_t> arrived(1);
  Pinned<unsigned> word(1);
  ASSERT_EQ(launch(countUp, 2, 1, 0, nullptr, arrived.data(), word.data()), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

// The barrier in front of the last line is missing.
__global__ void rotate(unsigned* out) {
  auto& words = blockShared<unsigned[64]>();
  words[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = words[(threadIdx.x + 1) % 64];
}

TEST_F(SanitizersTest, DISABLED_threadsThatRace) {
  Pinned<unsigned> out(64);
  ASSERT_EQ(launch(rotate, 1, 64, 0, nullptr, out.data()), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

__global__ void relaxedHandOver(uint32_t* arrived, uint32_t* flag, unsigned* data) {
  gather(arrived);
  if (blockIdx.x == 0) {
    *data = 5;
    storeRelaxed(flag, 1);  // should release
  } else {
    while (loadAcquire(flag) == 0) {
    }
    *data += 1;
  }
}

TEST_F(SanitizersTest, DISABLED_aStoreThatDoesNotRelease) {
  Pinned<uint32_t> arrived(1), flag(1);
  Pinned<unsigned> data(1);
  ASSERT_EQ(launch(relaxedHandOver, 2, 1, 0, nullptr, arrived.data(), flag.data(), data.data()), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(SanitizersTest, racesAreFound) {
  if (!kThread) GTEST_SKIP() << "needs a build with ThreadSanitizer";
  EXPECT_EQ(statusOf("SanitizersTest.DISABLED_blocksThatRace"), kFound);
  EXPECT_EQ(statusOf("SanitizersTest.DISABLED_threadsThatRace"), kFound);
  EXPECT_EQ(statusOf("SanitizersTest.DISABLED_aStoreThatDoesNotRelease"), kFound);
}

__global__ void writeAt(unsigned char* memory, size_t at) { memory[at] = 1; }
__global__ void writeSharedAt(size_t at) { dynamicShared()[at] = std::byte{1}; }
__global__ void writeObjectAt(size_t at) {
  reinterpret_cast<unsigned char*>(&blockShared<unsigned char[40]>())[at] = 1;
}

TEST_F(SanitizersTest, DISABLED_beyondDeviceMemory) {
  unsigned char* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 40), cudaSuccess);
  ASSERT_EQ(launch(writeAt, 1, 1, 0, nullptr, memory, 40), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(SanitizersTest, DISABLED_beyondSharedMemory) {
  ASSERT_EQ(launch(writeSharedAt, 1, 1, 40, nullptr, 40), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(SanitizersTest, DISABLED_beyondASharedObject) {
  ASSERT_EQ(launch(writeObjectAt, 1, 1, 0, nullptr, 40), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(SanitizersTest, accessesBeyondMemoryAreFound) {
  if (!kAddress) GTEST_SKIP() << "needs a build with AddressSanitizer";
  EXPECT_EQ(statusOf("SanitizersTest.DISABLED_beyondDeviceMemory"), kFound);
  EXPECT_EQ(statusOf("SanitizersTest.DISABLED_beyondSharedMemory"), kFound);
  EXPECT_EQ(statusOf("SanitizersTest.DISABLED_beyondASharedObject"), kFound);
}

// Beyond the pages of device memory there is nothing, with or without a sanitizer.
TEST_F(SanitizersTest, DISABLED_farBeyondDeviceMemory) {
  unsigned char* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 1024), cudaSuccess);
  ASSERT_EQ(launch(writeAt, 1, 1, 0, nullptr, memory, 1024), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(SanitizersTest, theEndOfDeviceMemoryIsGuarded) {
  EXPECT_EQ(statusOf("SanitizersTest.DISABLED_farBeyondDeviceMemory"), kThread || kAddress ? kFound : kKilled);
}

}  // namespace
}  // namespace tutti::emulation
