// Collectives in CUDA graphs: captured once and replayed with new input, with calls outside the graph in between.
//
// Whatever would allocate or wait while a stream captures is an error of the emulation, as it is of CUDA.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "device/protocol.h"
#include "emulation/device_fixture.h"
#include "emulation/gpu_ranks.h"
#include "emulation/pinned_memory.h"

namespace tutti::test {
namespace {

using device::test::Stream;
using Ints = std::pmr::vector<int32_t>;

// Elements that depend on who gives them, and on the replay.
void fill(Ints& to, int who, int replay) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = static_cast<int32_t>(i) * 7 + who * 1000 + replay * 100'003;
}

// An all-reduce of a rank each, in buffers that stay where they are.
class Reducing {
 public:
  Reducing(const GpuRanks& gpu, size_t count)
      : gpu_(gpu), in_(static_cast<size_t>(gpu.size()), Ints(count)), out_(in_) {}

  void issue(cudaStream_t stream) {
    inGroup([&] {
      for (int rank = 0; rank < gpu_.size(); ++rank)
        CHECK_TUTTI(
            tuttiAllReduce(at(in_, rank), at(out_, rank), in_[0].size(), tuttiInt32, tuttiSum, gpu_[rank], stream));
    });
  }
  void renew(int replay) {
    for (int rank = 0; rank < gpu_.size(); ++rank) {
      fill(in_[static_cast<size_t>(rank)], rank, replay);
      fill(out_[static_cast<size_t>(rank)], -1, replay);
    }
  }
  void expectSums() const {
    Ints sums(in_[0].size());
    for (const Ints& in : in_) std::transform(in.begin(), in.end(), sums.begin(), sums.begin(), std::plus());
    for (const Ints& out : out_) ASSERT_EQ(out, sums);
  }

 private:
  static int32_t* at(std::vector<Ints>& all, int rank) { return all[static_cast<size_t>(rank)].data(); }
  const GpuRanks& gpu_;
  std::vector<Ints> in_, out_;
};

// What `capture` queues, as a graph that can be launched.
class Graph {
 public:
  Graph(cudaStream_t stream, const std::function<void()>& capture) {
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    capture();
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph_), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&exec_, graph_), cudaSuccess);
  }
  ~Graph() {
    cudaGraphExecDestroy(exec_);
    cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(cudaStream_t stream) const { ASSERT_EQ(cudaGraphLaunch(exec_, stream), cudaSuccess); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

class Event {
 public:
  Event() { EXPECT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  // What is queued in `later` from now on comes after what is queued in `earlier` by now.
  void order(cudaStream_t earlier, cudaStream_t later) const {
    ASSERT_EQ(cudaEventRecord(event_, earlier), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(later, event_), cudaSuccess);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

size_t freeBytes() {
  size_t free = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  return free;
}

class DeviceCapture : public ::testing::TestWithParam<const char*> {
 protected:
  static GpuRanks ranks(int size) { return GpuRanks(size, settingsOf(GetParam())); }
  InPinnedMemory memory_;
};

TEST_P(DeviceCapture, OneCollectiveIsReplayedWithNewInput) {
  const GpuRanks gpu = ranks(1);
  const Stream stream;
  Reducing reducing(gpu, 1000);
  const size_t before = freeBytes();
  const Graph graph(stream, [&] { reducing.issue(stream); });
  EXPECT_EQ(freeBytes(), before);
  for (int replay = 0; replay < 3; ++replay) {
    reducing.renew(replay);
    graph.launch(stream);
    gpu.finish(stream);
    reducing.expectSums();
  }
}

TEST_P(DeviceCapture, AGroupIsReplayedBetweenEagerCalls) {
  const GpuRanks gpu = ranks(4);
  const Stream stream, other;
  Reducing captured(gpu, 5000), eager(gpu, 700);
  const size_t before = freeBytes();
  const Graph graph(stream, [&] { captured.issue(stream); });
  EXPECT_EQ(freeBytes(), before);
  for (int replay = 0; replay < 3; ++replay) {
    captured.renew(replay);
    eager.renew(10 + replay);
    graph.launch(stream);
    gpu.finish(stream);
    eager.issue(other);
    gpu.finish(other);
    captured.expectSums();
    eager.expectSums();
  }
}

TEST_P(DeviceCapture, ALongGraphRunsMoreThanOnceWithoutAWaitInBetween) {
  const GpuRanks gpu = ranks(2);
  const Stream stream;
  Reducing first(gpu, 300), second(gpu, 3000);
  const Graph graph(stream, [&] {
    for (int i = 0; i < 5; ++i) {
      first.issue(stream);
      second.issue(stream);
    }
  });
  first.renew(1);
  second.renew(2);
  for (int replay = 0; replay < 3; ++replay) graph.launch(stream);
  gpu.finish(stream);
  first.expectSums();
  second.expectSums();
}

// The streams of one graph, forked and joined by events: a communicator each, or the same one.
TEST_P(DeviceCapture, TwoStreamsForkAndJoin) {
  const GpuRanks one = ranks(2), two = ranks(2);
  for (const GpuRanks* second : {&two, &one}) {
    const Stream a, b;
    const Event fork, join;
    Reducing onA(one, 900), onB(*second, 1100);
    const Graph graph(a, [&] {
      fork.order(a, b);
      onA.issue(a);
      onB.issue(b);
      join.order(b, a);
    });
    for (int replay = 0; replay < 3; ++replay) {
      onA.renew(replay);
      onB.renew(20 + replay);
      graph.launch(a);
      one.finish(a);
      onA.expectSums();
      onB.expectSums();
    }
  }
}

// A group whose calls are on several streams is one launch, in the graph too.
TEST_P(DeviceCapture, AGroupOverTwoStreamsOfOneGraph) {
  const GpuRanks one = ranks(2), two = ranks(2);
  const Stream a, b;
  const Event fork, join;
  Reducing onA(one, 900), onB(two, 1100);
  const Graph graph(a, [&] {
    fork.order(a, b);
    inGroup([&] {
      onA.issue(a);
      onB.issue(b);
    });
    join.order(b, a);
  });
  for (int replay = 0; replay < 3; ++replay) {
    onA.renew(replay);
    onB.renew(replay);
    graph.launch(a);
    one.finish(a);
    onA.expectSums();
    onB.expectSums();
  }
}

// An all-gather-v of two ranks.
class Gathering {
 public:
  Gathering(const GpuRanks& gpu, std::vector<size_t> counts) : gpu_(gpu), counts_(std::move(counts)), out_(2) {
    for (const size_t count : counts_) in_.emplace_back(count);
    for (Ints& out : out_) out.resize(counts_[0] + counts_[1]);
  }

  // The caller's tables are his own again after the call.
  void issue(cudaStream_t stream) {
    std::vector<size_t> counts = counts_, offsets{0, counts_[0]};
    inGroup([&] {
      for (size_t r = 0; r < 2; ++r)
        CHECK_TUTTI(tuttiAllGatherV(in_[r].data(), out_[r].data(), counts.data(), offsets.data(), tuttiInt32,
                                    gpu_[static_cast<int>(r)], stream));
    });
    counts = offsets = {~size_t{0}, ~size_t{0}};
  }
  void renew(int replay) {
    for (size_t r = 0; r < 2; ++r) {
      fill(in_[r], static_cast<int>(r), replay);
      fill(out_[r], -1, replay);
    }
  }
  void expectAll() const {
    Ints all = in_[0];
    all.insert(all.end(), in_[1].begin(), in_[1].end());
    for (const Ints& out : out_) ASSERT_EQ(out, all);
  }

 private:
  const GpuRanks& gpu_;
  std::vector<size_t> counts_;
  std::vector<Ints> in_, out_;
};

TEST_P(DeviceCapture, AllGatherVKeepsItsTables) {
  const GpuRanks gpu = ranks(2);
  const Stream stream;
  Gathering captured(gpu, {5, 700}), eager(gpu, {90, 80});
  const Graph graph(stream, [&] { captured.issue(stream); });
  for (int replay = 0; replay < 3; ++replay) {
    captured.renew(replay);
    eager.renew(replay + 10);
    graph.launch(stream);
    for (int i = 0; i < 20; ++i) eager.issue(stream);
    gpu.finish(stream);
    captured.expectAll();
    eager.expectAll();
  }
}

// A gather-v and a scatter-v of two ranks, whose root alone has tables; and an exchange in place.
TEST_P(DeviceCapture, TablesOfARootAreKept) {
  const GpuRanks gpu = ranks(2);
  const Stream stream;
  Ints parts[2] = {Ints(5), Ints(700)}, all(705), back[2] = {Ints(5), Ints(700)}, swapped[2] = {Ints(60), Ints(60)};
  const Graph graph(stream, [&] {
    std::vector<size_t> counts{5, 700}, places{700, 0};
    for (const bool gathers : {true, false})
      inGroup([&] {
        for (size_t r = 0; r < 2; ++r) {
          const size_t *const many = r == 1 ? counts.data() : nullptr, *const at = r == 1 ? places.data() : nullptr;
          const tuttiComm_t comm = gpu[static_cast<int>(r)];
          CHECK_TUTTI(
              gathers
                  ? tuttiGatherV(parts[r].data(), parts[r].size(), all.data(), many, at, tuttiInt32, 1, comm, stream)
                  : tuttiScatterV(all.data(), many, at, back[r].data(), back[r].size(), tuttiInt32, 1, comm, stream));
        }
      });
    counts = places = {~size_t{0}, ~size_t{0}};
    inGroup([&] {
      for (size_t r = 0; r < 2; ++r)
        CHECK_TUTTI(
            tuttiAllToAll(swapped[r].data(), swapped[r].data(), 30, tuttiInt32, gpu[static_cast<int>(r)], stream));
    });
  });
  for (int replay = 0; replay < 3; ++replay) {
    for (size_t r = 0; r < 2; ++r) {
      fill(parts[r], static_cast<int>(r), replay);
      fill(back[r], -1, replay);
      fill(swapped[r], static_cast<int>(r) + 7, replay);
    }
    const Ints before[2] = {swapped[0], swapped[1]};
    graph.launch(stream);
    gpu.finish(stream);
    for (size_t r = 0; r < 2; ++r) {
      ASSERT_EQ(back[r], parts[r]);
      for (size_t i = 0; i < 60; ++i) ASSERT_EQ(swapped[r][i], before[i / 30][r * 30 + i % 30]);
    }
  }
}

// A group with so many calls that they do not fit into the arguments of a launch: every rank sends to every other one.
class Exchange {
 public:
  Exchange(const GpuRanks& gpu, size_t count)
      : gpu_(gpu), n_(static_cast<size_t>(gpu.size())), in_(n_ * n_, Ints(count)), out_(in_) {}

  void issue(cudaStream_t stream) {
    inGroup([&] {
      for (size_t from = 0; from < n_; ++from)
        for (size_t to = 0; to < n_; ++to) {
          Ints &give = in_[from * n_ + to], &take = out_[from * n_ + to];
          const int sender = static_cast<int>(from), receiver = static_cast<int>(to);
          if (from == to) continue;
          CHECK_TUTTI(tuttiSend(give.data(), give.size(), tuttiInt32, receiver, gpu_[sender], stream));
          CHECK_TUTTI(tuttiRecv(take.data(), take.size(), tuttiInt32, sender, gpu_[receiver], stream));
        }
    });
  }
  void renew(int replay) {
    for (size_t i = 0; i < in_.size(); ++i) {
      fill(in_[i], static_cast<int>(i), replay);
      // In place: the graph knows where the elements are.
      if (i % (n_ + 1) == 0)
        std::ranges::copy(in_[i], out_[i].begin());
      else
        std::ranges::fill(out_[i], -1);
    }
  }
  void expectAll() const { ASSERT_EQ(in_, out_); }

 private:
  const GpuRanks& gpu_;
  size_t n_;
  std::vector<Ints> in_, out_;
};

// Long enough for the communicator to use its memory for arguments again and again. What the graph reads stays.
TEST_P(DeviceCapture, AGroupOfManyMessagesKeepsItsArguments) {
  const GpuRanks gpu = ranks(6);
  const Stream stream;
  Exchange captured(gpu, 50), eager(gpu, 20);
  const Graph graph(stream, [&] { captured.issue(stream); });
  for (int i = 0; i < 100; ++i) eager.issue(stream);
  gpu.finish(stream);  // what is running must not be given new input
  captured.renew(1);
  eager.renew(2);
  graph.launch(stream);
  eager.issue(stream);
  gpu.finish(stream);
  captured.expectAll();
  eager.expectAll();
}

std::vector<const char*> protocols() {
  if (kThreadSanitized) return {"simple", "stream"};
  if (kSanitized) return {"simple", "ll", "stream"};
  std::vector<const char*> all{"copy", "stream"};
  for (const ProtocolRow& protocol : kProtocolRows) all.push_back(protocol.name.data());
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, DeviceCapture, ::testing::ValuesIn(protocols()),
                         [](const auto& way) { return std::string(way.param); });

}  // namespace
}  // namespace tutti::test
