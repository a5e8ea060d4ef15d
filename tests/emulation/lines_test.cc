// Kernels that need each other: blocks of several launches hand data over through words and lines that carry flags.
#include <algorithm>

#include "emulation/emulation_fixture.h"

namespace tutti::emulation {
namespace {

using LinesTest = EmulationTest;

constexpr unsigned kRounds = 200;

// Both wait for the other in every round, and read what the other wrote before it said so.
__global__ void pingPong(uint64_t* mine, const uint64_t* theirs, uint64_t* data, const uint64_t* theirData,
                         unsigned* wrong) {
  for (uint64_t round = 1; round <= kRounds; ++round) {
    data[threadIdx.x] = round * 1000 + threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
      storeRelease(mine, 2 * round);
      while (loadAcquire(theirs) < 2 * round) {
      }
    }
    __syncthreads();
    if (theirData[threadIdx.x] != round * 1000 + threadIdx.x) atomicAdd(wrong, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
      storeRelease(mine, 2 * round + 1);
      while (loadAcquire(theirs) < 2 * round + 1) {
      }
    }
    __syncthreads();
  }
}

TEST_F(LinesTest, twoLaunchesThatNeedEachOtherEnd) {
  Pinned<uint64_t> counters(2), data(128);
  Pinned<unsigned> wrong(1);
  TestStream one, two;
  uint64_t *a = counters.data(), *b = a + 1, *x = data.data(), *y = x + 64;
  ASSERT_EQ(launch(pingPong, 1, 64, 0, one, a, b, x, y, wrong.data()), cudaSuccess);
  ASSERT_EQ(launch(pingPong, 1, 64, 0, two, b, a, y, x, wrong.data()), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(wrong[0], 0u);
  EXPECT_EQ(counters[1], 2 * kRounds + 1);
}

struct alignas(16) LL {
  uint32_t data1, flag1, data2, flag2;
};

__global__ void sendLL(LL* lines, const uint32_t* acknowledged) {
  for (uint32_t round = 1; round <= kRounds; ++round) {
    storeLine8x2(&lines[threadIdx.x], LL{round * 7 + threadIdx.x, round, round * 9, round});
    while (loadRelaxed(&acknowledged[threadIdx.x]) != round) {
    }
  }
}

__global__ void receiveLL(const LL* lines, uint32_t* acknowledged, unsigned* wrong) {
  for (uint32_t round = 1; round <= kRounds; ++round) {
    LL line;
    do line = loadLine8x2<LL>(&lines[threadIdx.x]);
    while (line.flag1 != round || line.flag2 != round);
    if (line.data1 != round * 7 + threadIdx.x || line.data2 != round * 9) atomicAdd(wrong, 1);
    storeRelaxed(&acknowledged[threadIdx.x], round);
  }
}

TEST_F(LinesTest, flagsArriveWithTheirDataLL) {
  Pinned<LL> lines(32);
  Pinned<uint32_t> acknowledged(32);
  Pinned<unsigned> wrong(1);
  TestStream one, two;
  ASSERT_EQ(launch(sendLL, 1, 32, 0, one, lines.data(), acknowledged.data()), cudaSuccess);
  ASSERT_EQ(launch(receiveLL, 1, 32, 0, two, lines.data(), acknowledged.data(), wrong.data()), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(wrong[0], 0u);
}

struct alignas(16) Share {
  uint64_t low, high;
};

__device__ bool carriesFlag() { return threadIdx.x % 8 == 7; }

// A warp sends four lines a round; the next round starts when the other side has said that it took them.
__global__ void sendLL128(Share* lines, const uint64_t* taken) {
  for (uint64_t round = 1; round <= kRounds; ++round) {
    __syncwarp();
    storeLine128(&lines[threadIdx.x], Share{round * 3 + threadIdx.x, carriesFlag() ? round : round * 5});
    while (loadAcquire(taken) != round) {
    }
  }
}

__global__ void receiveLL128(const Share* lines, uint64_t* taken, unsigned* wrong) {
  for (uint64_t round = 1; round <= kRounds; ++round) {
    Share share;
    do share = loadLine128<Share>(&lines[threadIdx.x]);
    while (__any_sync(~0u, carriesFlag() && share.high != round));
    share = loadLine128<Share>(&lines[threadIdx.x]);
    const uint64_t high = carriesFlag() ? round : round * 5;
    if (share.low != round * 3 + threadIdx.x || share.high != high) atomicAdd(wrong, 1);
    __syncwarp();
    if (threadIdx.x == 0) storeRelease(taken, round);
  }
}

TEST_F(LinesTest, flagsArriveWithTheirDataLL128) {
  Pinned<Share> lines(32);
  Pinned<uint64_t> taken(1);
  Pinned<unsigned> wrong(1);
  TestStream one, two;
  ASSERT_EQ(launch(sendLL128, 1, 32, 0, one, lines.data(), taken.data()), cudaSuccess);
  ASSERT_EQ(launch(receiveLL128, 1, 32, 0, two, lines.data(), taken.data(), wrong.data()), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(wrong[0], 0u);
}

__global__ void storeApart(Share* line) {
  if (threadIdx.x >= 8) loadRelaxed(&reinterpret_cast<uint64_t*>(line)[0]);  // some lanes are elsewhere meanwhile
  storeLine128(&line[threadIdx.x], Share{});
}

// Two stores of parts of a line would leave room for a flag that arrives before its data.
TEST_F(LinesTest, aLineIsStoredByLanesThatHaveMet) {
  Pinned<Share> lines(32);
  ASSERT_EQ(launch(storeApart, 1, 32, 0, nullptr, lines.data()), cudaSuccess);
  expectReport({"a line of 128 bytes is stored by lanes that have not met before", "__syncwarp"});
}

__global__ void waitForFlag(const uint32_t* flag, uint32_t* started) {
  atomicAdd(started, 1);
  while (loadRelaxed(flag) == 0) {
  }
}
__global__ void raiseFlag(uint32_t* flag) { storeRelease(flag, 1); }

uint32_t read(const uint32_t& word) { return std::atomic_ref<uint32_t>(const_cast<uint32_t&>(word)).load(); }

// Three blocks fit. Two wait for a kernel of one block, which still finds room; then for one that does not.
TEST_F(LinesTest, aLaunchThatDoesNotFitWaits) {
  setMultiprocessors(3, 1);
  Pinned<uint32_t> flag(1), started(1), late(1);
  TestStream one, two, three;
  ASSERT_EQ(launch(waitForFlag, 2, 32, 0, one, flag.data(), started.data()), cudaSuccess);
  ASSERT_EQ(launch(raiseFlag, 1, 1, 0, two, flag.data()), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);

  flag[0] = started[0] = 0;
  ASSERT_EQ(launch(waitForFlag, 3, 32, 0, one, flag.data(), started.data()), cudaSuccess);
  while (read(started[0]) < 3 * 32) yield();
  ASSERT_EQ(launch(raiseFlag, 1, 1, 0, two, late.data()), cudaSuccess);
  ASSERT_EQ(launch(raiseFlag, 1, 1, 0, three, flag.data()), cudaSuccess);  // would free them, but has no room
  for (int i = 0; i < 1000; ++i) yield();
  EXPECT_EQ(read(late[0]), 0u);
  EXPECT_EQ(cudaStreamQuery(two), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(three), cudaErrorNotReady);
  storeRelease(flag.data(), 1);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(late[0], 1u);
}

}  // namespace
}  // namespace tutti::emulation
