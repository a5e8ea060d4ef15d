// The order of a communicator's launches on several streams, eager and captured. What is launched here writes a pattern
// over the same bytes: the last one to run wins.
#include <chrono>
#include <thread>

#include "device_fixture.h"
#include "kernels/cuda/order.h"
#include "kernels/cuda/pattern.h"

namespace tutti::device::test {
namespace {

constexpr size_t kOrderedBytes = 2000;

class DeviceOrderTest : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    context_ = std::make_shared<cuda::Context>(0);
    memory_ = device_->allocate(kOrderedBytes);
    order_ = device_->newOrder();
  }
  void launch(std::initializer_list<cudaStream_t> streams, uint64_t seed, LaunchOrder* order = nullptr) {
    const std::vector<DeviceStream> all(streams);
    LaunchOrder* orders[] = {order != nullptr ? order : order_.get()};
    cuda::StreamFork turn(*context_, all, orders);
    ASSERT_EQ(cuda::launchWritePattern(memory_->data, kOrderedBytes, seed, turn.stream()), cudaSuccess);
    turn.end();
  }
  bool lastWas(uint64_t seed) { return device_->checkPattern(memory_->data, kOrderedBytes, seed); }
  // Time for what is not held back as it should be to run ahead. Nothing is judged by it.
  static void giveTime() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }

  std::shared_ptr<cuda::Context> context_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<LaunchOrder> order_;
  Gate gate_;
};

TEST_F(DeviceOrderTest, ALaunchOnAnotherStreamWaitsForTheLast) {
  const Stream a, b, c;
  gate_.close(a);
  launch({a}, 1);
  launch({b}, 2);
  launch({c}, 3);
  giveTime();
  EXPECT_EQ(cudaStreamQuery(c), cudaErrorNotReady);
  gate_.open();
  c.finish();
  EXPECT_TRUE(lastWas(3));
}

TEST_F(DeviceOrderTest, CommunicatorsDoNotWaitForEachOther) {
  const Stream a, b;
  const auto other = device_->newOrder();
  gate_.close(a);
  launch({a}, 1);
  launch({b}, 2, other.get());
  b.finish();
  EXPECT_TRUE(lastWas(2));
  gate_.open();
  a.finish();
  EXPECT_TRUE(lastWas(1));
}

TEST_F(DeviceOrderTest, ALaunchForSeveralStreamsWaitsForAllAndAllWaitForIt) {
  const Stream a, b, c;
  gate_.close(b);
  launch({a, b, c, b}, 1);
  const auto other = device_->newOrder();  // so that only the stream keeps it back
  launch({c}, 2, other.get());
  giveTime();
  EXPECT_EQ(cudaStreamQuery(a), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(c), cudaErrorNotReady);
  gate_.open();
  c.finish();
  EXPECT_TRUE(lastWas(2));
}

TEST_F(DeviceOrderTest, ALaunchForSeveralCommunicatorsIsBehindAllAndBeforeTheirNext) {
  const Stream a, b, c;
  const auto other = device_->newOrder();
  gate_.close(b);
  launch({b}, 1, other.get());
  const DeviceStream streams[] = {a};
  LaunchOrder* orders[] = {order_.get(), other.get()};
  cuda::StreamFork turn(*context_, streams, orders);
  ASSERT_EQ(cuda::launchWritePattern(memory_->data, kOrderedBytes, 2, turn.stream()), cudaSuccess);
  turn.end();
  launch({c}, 3, other.get());
  giveTime();
  gate_.open();
  c.finish();
  EXPECT_TRUE(lastWas(3));
}

TEST_F(DeviceOrderTest, TheLegacyStreamIsAStreamLikeAnother) {
  const Stream a;
  gate_.close(a);
  launch({a}, 1);
  launch({nullptr}, 2);
  giveTime();
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  gate_.open();
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_TRUE(lastWas(2));
}

TEST_F(DeviceOrderTest, ANewStreamWithAnOldHandleIsAnother) {
  const auto place = [](cudaStream_t stream) { return cuda::StreamState::of(stream, 0).id; };
  unsigned long long first = 0;
  {
    const Stream a;
    first = place(a);
    EXPECT_EQ(place(a), first);
  }
  const Stream b;
  EXPECT_NE(place(b), first);
  EXPECT_EQ(place(nullptr), place(cudaStreamLegacy));
}

TEST_F(DeviceOrderTest, DrainWaitsForWhatWasLaunched) {
  const Stream a;
  device_->drain(*order_);  // nothing yet
  EXPECT_TRUE(device_->finished(*order_));
  gate_.close(a);
  launch({a}, 1);
  EXPECT_FALSE(device_->finished(*order_));
  std::thread opener([&] {
    giveTime();
    gate_.open();
  });
  device_->drain(*order_);
  EXPECT_TRUE(device_->finished(*order_));
  EXPECT_TRUE(lastWas(1));
  opener.join();
}

class Graph {
 public:
  explicit Graph(cudaStream_t stream) : stream_(stream) {
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming), cudaSuccess);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
    cudaEventDestroy(fork_);
  }
  // `to` takes part in the capture from here on.
  void fork(cudaStream_t to) { follow(stream_, to); }
  void join(cudaStream_t from) { follow(from, stream_); }
  void end() { ASSERT_EQ(cudaStreamEndCapture(stream_, &graph_), cudaSuccess); }
  // Not while this thread captures another one, which CUDA would end.
  void replay(cudaStream_t stream) {
    if (exec_ == nullptr) {
      ASSERT_EQ(cudaGraphInstantiate(&exec_, graph_, 0), cudaSuccess);
    }
    ASSERT_EQ(cudaGraphLaunch(exec_, stream), cudaSuccess);
  }

 private:
  void follow(cudaStream_t from, cudaStream_t to) {
    EXPECT_EQ(cudaEventRecord(fork_, from), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(to, fork_, 0), cudaSuccess);
  }
  cudaStream_t stream_;
  cudaEvent_t fork_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

TEST_F(DeviceOrderTest, InsideACaptureTheOrderIsKeptOnOtherStreamsToo) {
  const Stream a, b;
  Graph graph(a);
  graph.fork(b);
  gate_.close(a);
  launch({a}, 1);
  launch({b}, 2);  // by the user's own doing nothing joins b to the launch on a
  graph.join(b);
  graph.end();
  graph.replay(a);
  giveTime();
  EXPECT_EQ(cudaStreamQuery(a), cudaErrorNotReady);
  gate_.open();
  a.finish();
  EXPECT_TRUE(lastWas(2));
}

TEST_F(DeviceOrderTest, ALaunchForSeveralStreamsOfOneCaptureIsCaptured) {
  const Stream a, b, c;
  Graph graph(a);
  graph.fork(b);
  gate_.close(b);
  launch({a, b}, 1);
  const auto other = device_->newOrder();
  launch({b}, 2, other.get());
  graph.join(b);
  graph.end();
  graph.replay(c);
  giveTime();
  gate_.open();
  c.finish();
  EXPECT_TRUE(lastWas(2));
}

TEST_F(DeviceOrderTest, ACaptureAndEagerLaunchesDoNotMix) {
  const Stream a, b, c;
  launch({a}, 1);
  Graph graph(b);
  launch({b}, 2);  // waits for nothing from outside: that would end the capture
  launch({a}, 3);  // waits for nothing of the capture: that would draw the stream into it
  launch({c}, 4);
  graph.end();
  c.finish();
  EXPECT_TRUE(lastWas(4));
  graph.replay(b);
  b.finish();
  EXPECT_TRUE(lastWas(2));
  launch({c}, 5);
  c.finish();
  EXPECT_TRUE(lastWas(5));
}

TEST_F(DeviceOrderTest, CapturesOneAfterTheOtherAndSideBySideStayApart) {
  const Stream a, b;
  for (uint64_t round = 0; round < 6; ++round) {
    Graph first(a), second(b);
    launch({a}, 10 + round);
    launch({b}, 20 + round);
    launch({a}, 30 + round);
    first.end();
    second.end();
    first.replay(a);
    a.finish();
    EXPECT_TRUE(lastWas(30 + round));
    second.replay(b);
    b.finish();
    EXPECT_TRUE(lastWas(20 + round));
  }
}

TEST_F(DeviceOrderTest, OneLaunchIsNotHalfCaptured) {
  const Stream a, b;
  {
    Graph graph(b);
    const Thrown thrown = thrownBy([&] { launch({a, b}, 1); });
    expectSays(thrown, ErrorCode::kInvalidUsage, {"GPU 0", "number 2", "captures a CUDA graph", "or none"});
    graph.end();  // which the attempt did not spoil
  }
  Graph one(a), other(b);
  expectSays(thrownBy([&] { launch({a, b}, 1); }), ErrorCode::kInvalidUsage, {"captures another CUDA graph"});
  one.end();
  other.end();
}

TEST_F(DeviceOrderTest, SaysWhatToDoAboutTheLegacyStreamDuringACapture) {
  const Stream a(cudaStreamDefault);
  Graph graph(a);
  expectSays(thrownBy([&] { launch({nullptr}, 1); }), ErrorCode::kCuda,
             {"GPU 0", "cudaErrorStreamCaptureImplicit", "cudaStreamNonBlocking"});
  graph.end();
}

}  // namespace
}  // namespace tutti::device::test
