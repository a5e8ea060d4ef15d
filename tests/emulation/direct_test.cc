// Direct links on the emulated GPU: what peers read and write in each other's registered buffers, and that nothing else
// changes.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "emulation/arena.h"
#include "emulation/gpu_ranks.h"
#include "schedule/algorithm.h"

namespace tutti::test {
namespace {

using faults::Operation;

uint64_t allDirectSlots(const GpuRanks& gpu) {
  uint64_t sum = 0;
  for (int rank = 0; rank < gpu.size(); ++rank) sum += directSlots(gpu[rank]);
  return sum;
}

GpuRanks simpleRanks(int size, const std::string& algorithm) {
  return GpuRanks(
      size,
      {{"TUTTI_ALGO", algorithm}, {"TUTTI_PROTOCOL", "simple"}, {"TUTTI_CHANNELS", "2"}, {"TUTTI_GROUP_SIZE", "2"}});
}

const std::vector<size_t> kDirectCounts =
    kSanitized ? std::vector<size_t>{1033} : std::vector<size_t>{0, 1, 33, 1000, 20'001};

// Which ranks register: every combination is right, since each decides for itself.
bool registers(uint64_t mask, int rank) { return (mask >> (rank % 8) & 1) != 0; }

class DirectLinks : public ::testing::TestWithParam<int> {
 protected:
  static std::string algorithm() { return std::string(nameOf(static_cast<schedule::Algorithm>(GetParam()))); }

  // Every collective, in and out of place. Returns the number of direct slots.
  static uint64_t runAll(int size, uint64_t mask) {
    std::pmr::vector<std::byte> memory(64 << 20);
    Arena arena(memory.data(), memory.size());
    const GpuRanks gpu = simpleRanks(size, algorithm());
    for (int rank = 0; rank < size; ++rank)
      if (registers(mask, rank)) arena.registerAt(gpu[rank]);
    for (Operation operation : everyKind(size, kDirectCounts))
      for (const bool inPlace : {false, true}) {
        operation.inPlace = inPlace;
        EXPECT_EQ(gpu.run(operation), "") << size << " ranks, mask " << mask;
        arena.reset();
      }
    return allDirectSlots(gpu);
  }
};

TEST_P(DirectLinks, GiveRightResultsWhoeverRegisters) {
  EXPECT_EQ(runAll(3, 0), 0u);
  uint64_t fewer = 0, all = 0;
  for (const int size : kSanitized ? std::vector<int>{3} : std::vector<int>{2, 3, 8}) {
    fewer += runAll(size, 0b01100101);
    all += runAll(size, 0xff);
  }
  EXPECT_GT(fewer, 0u);
  EXPECT_GT(all, fewer);
}

std::string nameOfAlgorithm(const ::testing::TestParamInfo<int>& info) {
  return std::string(nameOf(static_cast<schedule::Algorithm>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(All, DirectLinks, ::testing::Range(0, schedule::kBuiltInAlgorithms, kThreadSanitized ? 3 : 1),
                         nameOfAlgorithm);

// Parts of an all-gather-v have lengths of their own.
TEST(DirectParts, AreLentWhereAllOfThemIsRegistered) {
  const GpuRanks gpu = simpleRanks(2, "direct");
  using Floats = std::pmr::vector<float>;
  Floats in[2] = {Floats(1000, 1), Floats(500, 2)}, out[2] = {Floats(1500), Floats(1500)};
  const size_t counts[] = {1000, 500}, places[] = {0, 1000};
  void* handle = nullptr;
  const auto gather = [&](int rank) {
    return tuttiAllGatherV(in[rank].data(), out[rank].data(), counts, places, tuttiFloat32, gpu[rank], nullptr);
  };
  CHECK_TUTTI(tuttiCommRegister(gpu[0], in[0].data(), 500 * sizeof(float), &handle, 0));
  gpu.together(gather);
  EXPECT_EQ(allDirectSlots(gpu), 0u);
  CHECK_TUTTI(tuttiCommRegister(gpu[0], in[0].data(), 1000 * sizeof(float), &handle, 0));
  gpu.together(gather);
  EXPECT_GT(allDirectSlots(gpu), 0u);
  Floats all = in[0];
  all.insert(all.end(), in[1].begin(), in[1].end());
  for (const Floats& each : out) EXPECT_EQ(each, all);
}

// Two ranks whose buffers of floats are registered.
class DirectPair : public ::testing::Test {
 protected:
  using Floats = std::pmr::vector<float>;
  static constexpr size_t kCount = 1000;
  DirectPair() {
    for (int rank = 0; rank < 2; ++rank) {
      void* handle = nullptr;
      CHECK_TUTTI(tuttiCommRegister(gpu_[rank], buffers_[rank].data(), kCount * sizeof(float), &handle, 0));
      handles_.push_back(handle);
      if (cudaStreamCreateWithFlags(&streams_[rank], cudaStreamNonBlocking) != cudaSuccess) throw std::bad_alloc();
    }
  }
  ~DirectPair() override {
    for (const cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  }

  GpuRanks gpu_ = simpleRanks(2, "twoshot");
  Floats buffers_[2] = {Floats(kCount, 1), Floats(kCount, 2)};
  std::vector<void*> handles_;
  cudaStream_t streams_[2] = {};
};

// Whoever is told that its send is done may overwrite what it sent.
TEST_F(DirectPair, ASendEndsWhenItsBufferHasBeenRead) {
  CHECK_TUTTI(tuttiSend(buffers_[0].data(), kCount, tuttiFloat32, 1, gpu_[0], streams_[0]));
  EXPECT_EQ(cudaStreamQuery(streams_[0]), cudaErrorNotReady);  // nobody can have read it yet
  CHECK_TUTTI(tuttiRecv(buffers_[1].data(), kCount, tuttiFloat32, 0, gpu_[1], streams_[1]));
  ASSERT_EQ(cudaStreamSynchronize(streams_[0]), cudaSuccess);
  buffers_[0].assign(kCount, 7);
  gpu_.finish(streams_[1]);
  EXPECT_EQ(buffers_[1], Floats(kCount, 1));
  EXPECT_EQ(allDirectSlots(gpu_), 1u);
}

TEST_F(DirectPair, ARegistrationEnds) {
  for (int rank = 0; rank < 2; ++rank) CHECK_TUTTI(tuttiCommDeregister(gpu_[rank], handles_[rank]));
  gpu_.together([&](int rank) {
    return tuttiAllReduce(buffers_[rank].data(), buffers_[rank].data(), kCount, tuttiFloat32, tuttiSum, gpu_[rank],
                          nullptr);
  });
  EXPECT_EQ(buffers_[0], Floats(kCount, 3));
  EXPECT_EQ(allDirectSlots(gpu_), 0u);
}

// A graph that is replayed opens and lends its buffers each time.
TEST_F(DirectPair, GraphsReplay) {
  const cudaStream_t stream = streams_[0];
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  inGroup([&] {
    for (int rank = 0; rank < 2; ++rank)
      CHECK_TUTTI(tuttiAllReduce(buffers_[rank].data(), buffers_[rank].data(), kCount, tuttiFloat32, tuttiSum,
                                 gpu_[rank], stream));
  });
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&ready, graph, 0), cudaSuccess);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(ready, stream), cudaSuccess);
  gpu_.finish(stream);
  EXPECT_EQ(buffers_[0], Floats(kCount, 12));
  EXPECT_EQ(buffers_[1], Floats(kCount, 12));
  EXPECT_GT(allDirectSlots(gpu_), 0u);
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
}

}  // namespace
}  // namespace tutti::test
