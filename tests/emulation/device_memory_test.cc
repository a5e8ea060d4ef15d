// Memory of the port to a GPU, within one process.
#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "device_fixture.h"

namespace tutti::device::test {
namespace {

using DeviceMemoryTest = OnGpu;

bool isZero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

TEST_F(DeviceMemoryTest, TellsWhatTheGpuIsLike) {
  const DeviceTraits& traits = device_->traits();
  EXPECT_FALSE(traits.name.empty());
  EXPECT_GT(traits.multiprocessors, 0u);
  EXPECT_GT(traits.threadsPerBlock, 0u);
  EXPECT_GE(traits.residentBlocks, traits.multiprocessors);
  EXPECT_NE(traits.uuid, decltype(traits.uuid){});
  EXPECT_EQ(device_->ordinal(), 0);
}

TEST_F(DeviceMemoryTest, OneObjectServesAllWhoAsk) { EXPECT_EQ(openDevice(0), device_); }

TEST_F(DeviceMemoryTest, NamesADeviceThatIsNotThere) {
  expectSays(thrownBy([] { openDevice(1000); }), ErrorCode::kInvalidArgument, {"GPU 1000", "numbered from 0"});
  expectSays(thrownBy([] { openDevice(-1); }), ErrorCode::kInvalidArgument, {"GPU -1"});
}

TEST_F(DeviceMemoryTest, MemoryOfTheGpuIsZeroedAlsoWhenItWasUsedBefore) {
  constexpr size_t kBytes = 70000;
  for (int round = 0; round < 3; ++round) {
    const auto memory = device_->allocate(kBytes);
    EXPECT_EQ(memory->bytes, kBytes);
    EXPECT_TRUE(isZero(read(memory->data, kBytes)));
    device_->writePattern(memory->data, kBytes, 7);
    EXPECT_FALSE(isZero(read(memory->data, kBytes)));
  }
}

TEST_F(DeviceMemoryTest, PinnedMemoryIsTheSameForHostAndGpu) {
  const auto memory = device_->allocatePinned(5000);
  EXPECT_TRUE(isZero({memory->data, memory->bytes}));
  device_->writePattern(memory->data, 5000, 3);
  const std::vector<std::byte> seen(memory->data, memory->data + 5000);
  EXPECT_EQ(seen, read(memory->data, 5000));
  EXPECT_TRUE(device_->checkPattern(memory->data, 5000, 3));
}

TEST_F(DeviceMemoryTest, PinsMemoryThatWasThereAndLetsItGo) {
  constexpr size_t kBytes = 64 << 10;
  void* mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* host = static_cast<std::byte*>(mapped);
  host[11] = std::byte{42};
  for (int round = 0; round < 2; ++round) {
    auto pinned = device_->pin(host, kBytes);
    EXPECT_EQ(pinned->data, host);
    const auto again = device_->pin(host, kBytes);  // of another rank of the process, which has the same
    pinned.reset();
    EXPECT_EQ(read(host + 11, 1).front(), std::byte{42});
    expectSays(thrownBy([&] { device_->pin(host, kBytes / 2); }), ErrorCode::kCuda,
               {"GPU 0", "32768 bytes", "pinned already"});
  }
  ::munmap(mapped, kBytes);
}

// More than the driver takes in one call.
TEST_F(DeviceMemoryTest, AnyNumberOfWordsIsWritten) {
  constexpr size_t kWords = 600;
  const auto memory = device_->allocatePinned(kWords * sizeof(uint64_t));
  auto* const words = reinterpret_cast<uint64_t*>(memory->data);
  for (const size_t count : {size_t{1}, size_t{255}, size_t{256}, size_t{257}, kWords}) {
    std::vector<WordOp> ops;
    for (size_t i = 0; i < count; ++i) ops.push_back({WordOp::Kind::kWrite, words + i, count + i});
    device_->writeWords(ops);
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(device_->readWord(words + i), count + i);
  }
}

TEST_F(DeviceMemoryTest, SaysHowMuchCouldNotBeAllocated) {
  expectSays(thrownBy([&] { device_->allocate(size_t{1} << 55); }), ErrorCode::kCuda,
             {"GPU 0", "36028797018963968 bytes", "cudaErrorMemoryAllocation", "free memory of this GPU"});
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "the error must not show in a later check";
}

TEST_F(DeviceMemoryTest, APatternTellsEveryChange) {
  for (const size_t bytes : {size_t{1}, size_t{63}, size_t{4096}, size_t{100001}}) {
    const auto memory = device_->allocate(bytes);
    device_->writePattern(memory->data, bytes, 5);
    EXPECT_TRUE(device_->checkPattern(memory->data, bytes, 5)) << bytes;
    EXPECT_TRUE(bytes == 1 || !device_->checkPattern(memory->data, bytes, 6)) << bytes;
    for (const size_t at : {size_t{0}, bytes / 2, bytes - 1}) {
      std::byte b = read(memory->data + at, 1).front() ^ std::byte{1};
      device_->copy(memory->data + at, &b, 1);
      EXPECT_FALSE(device_->checkPattern(memory->data, bytes, 5)) << bytes << " at " << at;
      b ^= std::byte{1};
      device_->copy(memory->data + at, &b, 1);
    }
    EXPECT_TRUE(device_->checkPattern(memory->data, bytes, 5)) << bytes;
  }
}

TEST_F(DeviceMemoryTest, AMovedPatternIsAnother) {
  const auto memory = device_->allocate(8192);
  device_->writePattern(memory->data, 8192, 5);
  EXPECT_FALSE(device_->checkPattern(memory->data + 1, 4096, 5));
  EXPECT_FALSE(device_->checkPattern(memory->data + 4096, 4096, 5));
}

TEST_F(DeviceMemoryTest, CopiesBesideAStreamThatIsHeldUp) {
  const Stream stream(cudaStreamDefault);
  Gate gate;
  gate.close(stream);
  const auto memory = device_->allocate(16);
  const uint64_t value = 0x1122334455667788;
  device_->copy(memory->data, &value, sizeof value);
  uint64_t back = 0;
  device_->copy(&back, memory->data, sizeof back);
  EXPECT_EQ(back, value);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  gate.open();
  stream.finish();
}

TEST_F(DeviceMemoryTest, WorksWhileAnotherThreadCapturesAGraph) {
  const Stream stream;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  const auto beside = [&] {
    const auto memory = device_->allocate(1000);
    device_->writePattern(memory->data, 1000, 9);
    EXPECT_TRUE(device_->checkPattern(memory->data, 1000, 9));
    device_->drain(*device_->newOrder());
  };
  beside();
  std::thread(beside).join();
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  size_t nodes = 1;
  ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 0u);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(DeviceMemoryTest, SharesOutTheRoomForBlocks) {
  const uint32_t all = device_->freeBlocks();
  EXPECT_EQ(all, device_->traits().residentBlocks);
  device_->reserve(all - 1);
  EXPECT_EQ(device_->freeBlocks(), 1u);
  expectSays(thrownBy([&] { device_->reserve(2); }), ErrorCode::kInvalidUsage, {"GPU 0", "fewer channels"});
  EXPECT_EQ(device_->freeBlocks(), 1u);
  device_->reserve(1);
  device_->giveBack(all);
  EXPECT_EQ(device_->freeBlocks(), all);
}

// Threads that never used CUDA have no context, and one on GPU 0 would cost memory there.
TEST_F(DeviceMemoryTest, LeavesTheThreadWithTheContextThatItHad) {
  void* found = nullptr;
  ASSERT_EQ(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &found, 12000, cudaEnableDefault), cudaSuccess);
  const auto current = [&] {
    CUcontext context = nullptr;
    EXPECT_EQ(reinterpret_cast<decltype(&cuCtxGetCurrent)>(found)(&context), CUDA_SUCCESS);
    return context;
  };
  std::thread([&] {
    device_->allocate(100);
    thrownBy([&] { device_->allocate(size_t{1} << 55); });
    EXPECT_EQ(current(), nullptr);
  }).join();
  std::thread([&] {
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    const CUcontext before = current();
    EXPECT_NE(before, nullptr);
    device_->allocate(100);
    EXPECT_EQ(current(), before);
    EXPECT_EQ(currentDevice(), 0);
  }).join();
}

TEST_F(DeviceMemoryTest, ReachesItself) {
  std::string why;
  EXPECT_TRUE(device_->reach(0, why)) << why;
}

}  // namespace
}  // namespace tutti::device::test
