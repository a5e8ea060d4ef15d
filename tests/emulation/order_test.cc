// Communicators on several streams and threads: what is called first runs first, and what is independent finds its way.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "emulation/device_fixture.h"
#include "emulation/gpu_ranks.h"

namespace tutti::test {
namespace {

using device::test::Gate;
using device::test::Stream;
using Ints = std::vector<int32_t>;

// values[rank] = the sum over all ranks, in place.
void reduce(const GpuRanks& gpu, std::vector<Ints>& values, cudaStream_t stream) {
  inGroup([&] {
    for (int rank = 0; rank < gpu.size(); ++rank) {
      Ints& own = values[static_cast<size_t>(rank)];
      CHECK_TUTTI(tuttiAllReduce(own.data(), own.data(), own.size(), tuttiInt32, tuttiSum, gpu[rank], stream));
    }
  });
}

// Each all-reduce in place doubles the values of two ranks that are the same: one that overtakes another, or runs
// beside it, shows.
TEST(DeviceStreams, OneCommunicatorKeepsItsOrderOnTwoStreams) {
  const GpuRanks gpu(2, {{"TUTTI_CHANNELS", "2"}});
  const Stream a, b;
  std::vector<Ints> values(2, Ints(3000, 1));
  Gate gate;
  gate.close(a);
  for (int i = 0; i < 10; ++i) reduce(gpu, values, i % 2 == 0 ? a : b);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // time to run ahead of the gate
  EXPECT_EQ(values[0][0], 1);
  gate.open();
  ASSERT_EQ(cudaStreamSynchronize(a), cudaSuccess);
  gpu.finish(b);
  for (const Ints& own : values) EXPECT_EQ(own, Ints(3000, 1 << 10));
}

TEST(DeviceStreams, FourCommunicatorsRunOnFourStreams) {
  std::vector<std::unique_ptr<GpuRanks>> gpus;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::vector<Ints>> values(4, std::vector<Ints>(2, Ints(5000, 1)));
  for (int i = 0; i < 4; ++i) {
    gpus.push_back(std::make_unique<GpuRanks>(2, std::vector<Setting>{{"TUTTI_CHANNELS", "2"}}));
    streams.push_back(std::make_unique<Stream>());
  }
  for (int i = 0; i < 15; ++i)
    for (size_t c = 0; c < 4; ++c) reduce(*gpus[c], values[c], *streams[c]);
  for (size_t c = 0; c < 4; ++c) {
    gpus[c]->finish(*streams[c]);
    for (const Ints& own : values[c]) EXPECT_EQ(own, Ints(5000, 1 << 15));
  }
}

// The first communicator's stream is held up: the others do not care.
TEST(DeviceStreams, ACommunicatorThatIsHeldUpHoldsUpNoOther) {
  const GpuRanks held(2, {{"TUTTI_CHANNELS", "2"}}), free(2, {{"TUTTI_CHANNELS", "2"}});
  const Stream a, b;
  std::vector<Ints> first(2, Ints(100, 1)), second(2, Ints(100, 1));
  Gate gate;
  gate.close(a);
  reduce(held, first, a);
  reduce(free, second, b);
  free.finish(b);
  EXPECT_EQ(second[1], Ints(100, 2));
  gate.open();
  held.finish(a);
  EXPECT_EQ(first[1], Ints(100, 2));
}

// As PyTorch does: a thread a rank, each with a stream of its own, and no group.
TEST(DeviceStreams, RanksCallFromThreadsOfTheirOwn) {
  tuttiConfig_t config = testConfig();
  config.device = "cuda:0";
  config.channels = 2;
  const Settings small({Setting{"TUTTI_GPU_BUFFER_MIB", "1"}});
  for (const int ranks : {2, 4}) {
    withCommunicators(ranks, config, [&](tuttiComm_t comm, int rank) {
      const Stream stream;
      Ints values(2000, rank + 1), parts(2000 * static_cast<size_t>(ranks));
      int32_t sum = ranks * (ranks + 1) / 2;
      CHECK_TUTTI(tuttiAllReduce(values.data(), values.data(), 2000, tuttiInt32, tuttiSum, comm, stream));
      for (int i = 0; i < 10; ++i, sum *= ranks)
        CHECK_TUTTI(tuttiAllReduce(values.data(), values.data(), 2000, tuttiInt32, tuttiSum, comm, stream));
      CHECK_TUTTI(tuttiAllGather(values.data(), parts.data(), 2000, tuttiInt32, comm, stream));
      if (cudaStreamSynchronize(stream) != cudaSuccess) throw std::runtime_error("the stream failed");
      EXPECT_EQ(parts, Ints(parts.size(), sum)) << "rank " << rank;
    });
  }
}

}  // namespace
}  // namespace tutti::test
