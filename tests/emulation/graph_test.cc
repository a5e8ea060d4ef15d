// Captures and graphs.
#include <thread>

#include "emulation/emulation_fixture.h"

namespace tutti::emulation {
namespace {

using GraphTest = EmulationTest;

__global__ void add(uint32_t* word, uint32_t value) { *word += value; }
__global__ void store(uint32_t* word, uint32_t value) { storeRelease(word, value); }
__global__ void meet(uint32_t* mine, const uint32_t* theirs) {
  atomicAdd(mine, 1);
  const uint32_t round = loadRelaxed(mine);
  while (loadRelaxed(theirs) < round) {
  }
}

struct Fork {
  Fork() {
    EXPECT_EQ(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming), cudaSuccess);
    EXPECT_EQ(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming), cudaSuccess);
  }
  ~Fork() {
    EXPECT_EQ(cudaEventDestroy(forked), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(joined), cudaSuccess);
  }
  cudaEvent_t forked = nullptr, joined = nullptr;
};

cudaStreamCaptureStatus statusOf(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  EXPECT_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
  return status;
}

// Two branches that wait for each other: they can end only side by side. Arguments are those of the capture.
TEST_F(GraphTest, aCaptureWithForkAndJoinRunsThrice) {
  TestStream main, side;
  Fork fork;
  Pinned<uint32_t> counters(2), sum(1);
  ASSERT_EQ(cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  uint32_t value = 5;
  ASSERT_EQ(launch(add, 1, 1, 0, main, sum.data(), value), cudaSuccess);
  value = 1000;
  ASSERT_EQ(cudaEventRecord(fork.forked, main), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(side, fork.forked), cudaSuccess);
  EXPECT_EQ(statusOf(side), cudaStreamCaptureStatusActive);
  ASSERT_EQ(launch(meet, 1, 1, 0, main, &counters[0], &counters[1]), cudaSuccess);
  ASSERT_EQ(launch(meet, 1, 1, 0, side, &counters[1], &counters[0]), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(fork.joined, side), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(main, fork.joined), cudaSuccess);
  ASSERT_EQ(launch(add, 1, 1, 0, main, sum.data(), 7), cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(main, &graph), cudaSuccess);
  EXPECT_EQ(statusOf(side), cudaStreamCaptureStatusNone);
  EXPECT_EQ(sum[0], 0u);  // nothing has run
  size_t nodes = 0;
  ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 4u);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(exec, main), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(main), cudaSuccess);
  EXPECT_EQ(sum[0], 36u);
  EXPECT_EQ(counters[0], 3u);
  EXPECT_EQ(counters[1], 3u);
  ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphTest, aCaptureTellsItsIdAndWhatComesNextAfter) {
  TestStream stream;
  Pinned<uint32_t> word(1);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  ASSERT_EQ(launch(add, 1, 1, 0, stream, word.data(), 1), cudaSuccess);
  cudaStreamCaptureStatus status{};
  unsigned long long id = 0;
  cudaGraph_t during = nullptr, graph = nullptr;
  const cudaGraphNode_t* nodes = nullptr;
  size_t count = 0;
  ASSERT_EQ(cudaStreamGetCaptureInfo(stream, &status, &id, &during, &nodes, nullptr, &count), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  EXPECT_NE(id, 0u);
  EXPECT_EQ(count, 1u);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(graph, during);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

void expectEnd(cudaStream_t stream, cudaError_t error) {
  cudaGraph_t graph = reinterpret_cast<cudaGraph_t>(8);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), error);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(statusOf(stream), cudaStreamCaptureStatusNone);
}

TEST_F(GraphTest, whatSpoilsACaptureIsAnError) {
  TestStream stream, side;
  Fork fork;
  Pinned<uint32_t> word(1);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(statusOf(stream), cudaStreamCaptureStatusInvalidated);
  EXPECT_EQ(launch(add, 1, 1, 0, stream, word.data(), 1), cudaErrorStreamCaptureInvalidated);
  expectEnd(stream, cudaErrorStreamCaptureInvalidated);

  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(fork.forked, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(side, fork.forked), cudaSuccess);
  ASSERT_EQ(launch(add, 1, 1, 0, side, word.data(), 1), cudaSuccess);
  expectEnd(stream, cudaErrorStreamCaptureUnjoined);

  ASSERT_EQ(cudaEventRecord(fork.joined, side), cudaSuccess);  // outside of any capture
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, fork.joined), cudaErrorStreamCaptureIsolation);
  expectEnd(stream, cudaErrorStreamCaptureInvalidated);

  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported);
}

TEST_F(GraphTest, theThreadsModeSaysWhatIsForbiddenDuringCaptures) {
  TestStream stream;
  void* memory = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  std::thread([] {
    void* others = nullptr;
    EXPECT_EQ(cudaMalloc(&others, 64), cudaSuccess);  // not this thread's capture
    EXPECT_EQ(cudaFree(others), cudaSuccess);
  }).join();
  auto mode = cudaStreamCaptureModeRelaxed;
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  EXPECT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(statusOf(stream), cudaStreamCaptureStatusActive);
  EXPECT_EQ(cudaFree(memory), cudaErrorStreamCaptureUnsupported);
  expectEnd(stream, cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(GraphTest, theNullStreamSpoilsCapturesOfBlockingStreams) {
  TestStream blocking(cudaStreamDefault);
  Pinned<uint32_t> word(1);
  ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(launch(store, 1, 1, 0, nullptr, word.data(), 1), cudaErrorStreamCaptureImplicit);
  expectEnd(blocking, cudaErrorStreamCaptureInvalidated);
}

}  // namespace
}  // namespace tutti::emulation
