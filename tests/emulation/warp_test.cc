// The lanes of a warp: votes, shuffles, and what is said when the lanes disagree.
#include <algorithm>

#include "emulation/emulation_fixture.h"

namespace tutti::emulation {
namespace {

using WarpTest = EmulationTest;

constexpr unsigned kAll = ~0u;

__global__ void vote(unsigned* out) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned odd = __ballot_sync(kAll, lane & 1);
  const bool right = odd == 0xaaaaaaaa && __any_sync(kAll, lane == warp) && !__any_sync(kAll, lane == 32) &&
                     __all_sync(kAll, lane < 32) && !__all_sync(kAll, lane != 31);
  out[threadIdx.x] = right;
}

TEST_F(WarpTest, votes) {
  Pinned<unsigned> out(96);
  ASSERT_EQ(launch(vote, 1, 96, 0, nullptr, out.data()), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(std::count(out.begin(), out.end(), 1u), 96);
}

__global__ void shuffle(unsigned* wrong) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const uint64_t wide = 0x100000000 * static_cast<uint64_t>(lane);
  const auto expect = [&](bool right) { atomicAdd(wrong, !right); };
  expect(__shfl_sync(kAll, lane, 5) == 5);
  expect(__shfl_sync(kAll, lane, 3, 8) == lane / 8 * 8 + 3);
  expect(__shfl_xor_sync(kAll, wide, 16) == 0x100000000 * static_cast<uint64_t>(lane ^ 16));
  expect(__shfl_down_sync(kAll, lane, 4) == (lane + 4 < 32 ? lane + 4 : lane));
  expect(__shfl_down_sync(kAll, lane, 4, 8) == (lane % 8 + 4 < 8 ? lane + 4 : lane));
  expect(__shfl_up_sync(kAll, 0.5f * static_cast<float>(lane), 1) == 0.5f * static_cast<float>(std::max(lane - 1, 0)));
}

TEST_F(WarpTest, shuffles) {
  Pinned<unsigned> wrong(1);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    setSeed(seed);
    ASSERT_EQ(launch(shuffle, 2, 64, 0, nullptr, wrong.data()), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(wrong[0], 0u) << seed;
  }
}

// Lanes meet in one mask, then in another one; those of the second may already wait while the first still meet.
__global__ void meetInParts(unsigned* out) {
  const unsigned lane = threadIdx.x;
  unsigned sum = lane;
  if (lane < 16) {
    for (int bits = 8; bits > 0; bits /= 2) sum += __shfl_xor_sync(0xffff, sum, bits);
  } else {
    for (int bits = 8; bits > 0; bits /= 2) sum += __shfl_xor_sync(0xffff0000, sum, bits);
  }
  if (lane == 0 || lane == 16) sum += __shfl_xor_sync(0x10001, sum, 16);
  __syncwarp();
  out[lane] = __shfl_sync(kAll, sum, 16);
}

TEST_F(WarpTest, partsOfAWarpMeetByThemselves) {
  Pinned<unsigned> out(32);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    setSeed(seed);
    ASSERT_EQ(launch(meetInParts, 1, 32, 0, nullptr, out.data()), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(std::count(out.begin(), out.end(), 31u * 32 / 2), 32) << seed;
  }
}

__global__ void passOnThroughShared(unsigned* out) {
  auto& word = blockShared<unsigned>();
  for (unsigned turn = 0; turn < 32; ++turn) {
    if (threadIdx.x == turn) word = turn * 3;
    __syncwarp();
    if (threadIdx.x == 31 - turn) out[turn] = word;
    __syncwarp();
  }
}

TEST_F(WarpTest, warpBarriersOrderAccesses) {
  Pinned<unsigned> out(32);
  ASSERT_EQ(launch(passOnThroughShared, 1, 32, 0, nullptr, out.data()), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(out[i], i * 3);
}

__global__ void differentMasks() { __any_sync(threadIdx.x == 3 ? 0xff : kAll, 1); }
__global__ void exitedLane() {
  if (threadIdx.x == 9) return;
  __syncwarp();
}
__global__ void notInMask() {
  if (threadIdx.x == 4) __ballot_sync(0xf, 1);
}
__global__ void differentOperations() {
  if (threadIdx.x < 16)
    __any_sync(kAll, 1);
  else
    __syncwarp();
}

TEST_F(WarpTest, lanesThatDisagreeAreReported) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    setSeed(seed);
    ASSERT_EQ(launch(differentMasks, 1, 32, 0, nullptr), cudaSuccess);
    expectReport({"differentMasks", "__any_sync", "mask 0x000000ff", "mask 0xffffffff"});
    ASSERT_EQ(launch(exitedLane, 1, 64, 0, nullptr), cudaSuccess);
    expectReport({"exitedLane", "__syncwarp", "return", "warp 0"});
    ASSERT_EQ(launch(notInMask, 1, 32, 0, nullptr), cudaSuccess);
    expectReport({"notInMask", "does not name lane 4"});
    ASSERT_EQ(launch(differentOperations, 1, 32, 0, nullptr), cudaSuccess);
    expectReport({"differentOperations", "__any_sync", "__syncwarp"});
    ASSERT_EQ(launch(exitedLane, 1, 8, 0, nullptr), cudaSuccess);
    expectReport({"the block does not have"});
  }
}

}  // namespace
}  // namespace tutti::emulation
