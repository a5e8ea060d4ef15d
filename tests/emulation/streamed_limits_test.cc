// Operations that wait in streams, where the GPU is small or can less.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "device/device.h"
#include "emulation/control.h"
#include "emulation/device_fixture.h"
#include "emulation/gpu_ranks.h"
#include "emulation/pinned_memory.h"

namespace tutti::test {
namespace {

using faults::Kind;
using faults::Operation;

class Streamed : public ::testing::Test {
 protected:
  void TearDown() override {
    emulation::setMultiprocessors(132, 1);
    emulation::setStreamsWait(true);
  }
  InPinnedMemory memory_;
};

// Two kernels that wait for each other would stand in each other's way on a GPU that holds one block.
TEST_F(Streamed, OperationsHoldNoMultiprocessorWhileTheyWait) {
  const auto device = device::openDevice(0);  // what it holds for others is known when it is opened
  emulation::setMultiprocessors(1, 1);
  const GpuRanks gpu(8, settingsOf("stream"));
  for (int kind = 0; kind < faults::kKinds; ++kind) {
    Operation operation;
    operation.kind = static_cast<Kind>(kind);
    operation.count = 3000;
    operation.salt = static_cast<uint64_t>(kind);
    ASSERT_EQ(gpu.run(operation), "");
  }
}

// One rank waits for the other, and the driver would take any number of its steps.
TEST_F(Streamed, AThreadThatQueuesFarAheadWaits) {
  const GpuRanks gpu(2, settingsOf("stream") + std::vector<Setting>{{"TUTTI_ALGO", "ring"}});
  device::test::Stream streams[2];
  std::vector<std::pmr::vector<int32_t>> values(2, std::pmr::vector<int32_t>(1000, 1));
  std::atomic<int> done[2] = {};
  const auto reduce = [&](int rank) {
    auto& own = values[static_cast<size_t>(rank)];
    for (int i = 0; i < 1000; ++i, ++done[rank])
      CHECK_TUTTI(tuttiAllReduce(own.data(), own.data(), own.size(), tuttiInt32, tuttiMax, gpu[rank], streams[rank]));
  };
  std::thread ahead([&] { reduce(0); });
  while (done[0] == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // time to run ahead
  EXPECT_LT(done[0], 1000);
  std::thread behind([&] { reduce(1); });
  ahead.join();
  behind.join();
  streams[0].finish();
  gpu.finish(streams[1]);
  for (const auto& own : values) EXPECT_EQ(own, std::pmr::vector<int32_t>(1000, 1));
}

// A GPU whose streams can not wait: kernels do, as if nothing had been asked for.
TEST_F(Streamed, OperationsRunInKernelsWhereStreamsCanNotWait) {
  emulation::setStreamsWait(false);
  const GpuRanks gpu(3, settingsOf("stream"));
  Operation operation;
  operation.count = 1000;
  EXPECT_EQ(gpu.run(operation), "");
}

}  // namespace
}  // namespace tutti::test
