// Streams of host communicators: in-order queues beside the calling thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <latch>
#include <set>
#include <thread>
#include <vector>

#include "support/api_ranks.h"

namespace {

using namespace tutti::test;

class Streams {
 public:
  explicit Streams(size_t n) : streams_(n) {
    for (auto& stream : streams_) CHECK_TUTTI(tuttiStreamCreate(&stream, 0));
  }
  ~Streams() {
    for (auto stream : streams_) EXPECT_EQ(tuttiStreamDestroy(stream), tuttiSuccess);
  }
  tuttiStream_t operator[](size_t i) const { return streams_[i]; }

 private:
  std::vector<tuttiStream_t> streams_;
};

TEST(Stream, RunsInOrderAndReturnsAtOnce) {
  withCommunicators(3, testConfig(), [](tuttiComm_t comm, int rank) {
    Streams streams(1);
    std::vector<double> data(50'000, rank + 1);
    for (int i = 0; i < 10; ++i)  // each depends on the one before: 6, 18, 54, …
      CHECK_TUTTI(tuttiAllReduce(data.data(), data.data(), data.size(), tuttiFloat64, tuttiSum, comm, streams[0]));
    CHECK_TUTTI(tuttiStreamSynchronize(streams[0]));
    EXPECT_EQ(data, std::vector<double>(50'000, 6 * 19683));
    EXPECT_EQ(tuttiStreamQuery(streams[0]), tuttiSuccess);
  });
}

TEST(Stream, CallsOfOneCommunicatorPassInTheOrderOfTheCallsWhateverTheirStream) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    Streams streams(3);
    std::vector<std::vector<int>> data(12, std::vector<int>(10'000, rank + 1));
    for (size_t i = 0; i < data.size(); ++i) {
      const tuttiStream_t stream = i % 4 == 3 ? nullptr : streams[i % 4];
      CHECK_TUTTI(tuttiAllReduce(data[i].data(), data[i].data(), data[i].size(), tuttiInt32, tuttiSum, comm, stream));
    }
    for (size_t s = 0; s < 3; ++s) CHECK_TUTTI(tuttiStreamSynchronize(streams[s]));
    for (const auto& values : data) EXPECT_EQ(values, std::vector<int>(10'000, 3));
  });
}

// Each of the calls is done well within its deadline; all of them together are not. Those that wait for their turn
// meanwhile have no reason to give up.
TEST(Stream, TheDeadlineOfACallBeginsWithItsTurn) {
  tuttiConfig_t config = testConfig();
  config.operationTimeoutMs = 2'000;
  withCommunicators(2, config, [](tuttiComm_t comm, int rank) {
    constexpr size_t kCalls = 4;
    Streams streams(kCalls);
    for (size_t i = 0; i < kCalls; ++i) {
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(700));
      CHECK_TUTTI(tuttiBarrier(comm, rank == 0 ? streams[i] : nullptr));
    }
    for (size_t i = 0; i < kCalls; ++i) CHECK_TUTTI(tuttiStreamSynchronize(streams[i]));
  });
}

TEST(Stream, SendAndReceiveOnStreamsOfTheirOwnOverEachTransport) {
  for (const char* transport : {"p2p", "tcp", "shm"}) {
    tuttiConfig_t config = testConfig();
    config.transports = transport;
    withCommunicators(2, config, [](tuttiComm_t comm, int rank) {
      Streams streams(2);
      constexpr size_t kCount = 400'000;
      std::vector<int> out(kCount, rank), in(kCount, -1);
      for (int i = 0; i < 3; ++i) {
        CHECK_TUTTI(tuttiSend(out.data(), kCount, tuttiInt32, 1 - rank, comm, streams[0]));
        CHECK_TUTTI(tuttiRecv(in.data(), kCount, tuttiInt32, 1 - rank, comm, streams[1]));
      }
      CHECK_TUTTI(tuttiStreamSynchronize(streams[0]));
      CHECK_TUTTI(tuttiStreamSynchronize(streams[1]));
      EXPECT_EQ(in, std::vector<int>(kCount, 1 - rank));
    });
  }
}

// Messages of all lengths both ways, and pauses in which one stream sleeps on a socket that another drives. What races
// there, a sanitizer sees.
TEST(Stream, StreamsThatShareASocketDriveItAndSleepOnItInTurn) {
  tuttiConfig_t config = testConfig();
  config.transports = "tcp";
  withCommunicators(2, config, [](tuttiComm_t comm, int rank) {
    Streams streams(3);
    constexpr size_t kMost = 60'000, kRounds = 60;
    std::vector<int> out(kMost, rank), in(kMost, -1), sum(kRounds, rank + 1);
    std::ptrdiff_t longest = 0;
    for (size_t i = 0; i < kRounds; ++i) {
      const size_t count = i * i * i * 997 % kMost + 1;
      longest = std::max(longest, static_cast<std::ptrdiff_t>(count));
      const bool late = i % 10 == static_cast<size_t>(5 * rank);
      CHECK_TUTTI(tuttiRecv(in.data(), count, tuttiInt32, 1 - rank, comm, streams[1]));
      if (late) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      CHECK_TUTTI(tuttiSend(out.data(), count, tuttiInt32, 1 - rank, comm, streams[0]));
      CHECK_TUTTI(tuttiAllReduce(&sum[i], &sum[i], 1, tuttiInt32, tuttiSum, comm, streams[2]));
      if (i % 4 == 0) CHECK_TUTTI(tuttiStreamSynchronize(streams[0]));
    }
    for (size_t s = 0; s < 3; ++s) CHECK_TUTTI(tuttiStreamSynchronize(streams[s]));
    EXPECT_EQ(std::vector<int>(in.begin(), in.begin() + longest), std::vector<int>(size_t(longest), 1 - rank));
    EXPECT_EQ(sum, std::vector<int>(kRounds, 3));
  });
}

TEST(Stream, GroupsGoToTheirStreams) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    Streams streams(2);
    constexpr size_t kCount = 400'000;
    std::vector<int> out(kCount, rank), in(kCount, -1), sum(kCount, rank + 1);
    CHECK_TUTTI(tuttiGroupStart());
    CHECK_TUTTI(tuttiSend(out.data(), kCount, tuttiInt32, 1 - rank, comm, streams[0]));
    CHECK_TUTTI(tuttiRecv(in.data(), kCount, tuttiInt32, 1 - rank, comm, streams[0]));
    CHECK_TUTTI(tuttiAllReduce(sum.data(), sum.data(), kCount, tuttiInt32, tuttiSum, comm, streams[1]));
    CHECK_TUTTI(tuttiGroupEnd());
    CHECK_TUTTI(tuttiCommFinalize(comm));
    EXPECT_EQ(in, std::vector<int>(kCount, 1 - rank));
    EXPECT_EQ(sum, std::vector<int>(kCount, 3));
  });
}

TEST(Stream, AHandleComesBackOnlyLongAfterItsEnd) {
  std::vector<tuttiStream_t> handles(3000);
  for (size_t i = 0; i < handles.size(); ++i) {
    CHECK_TUTTI(tuttiStreamCreate(&handles[i], 0));
    CHECK_TUTTI(tuttiStreamDestroy(handles[i]));
    const auto recent = handles.begin() + static_cast<long>(i > 1000 ? i - 1000 : 0);
    const auto here = handles.begin() + static_cast<long>(i);
    ASSERT_EQ(std::count(recent, here, handles[i]), 0) << "stream " << i;
    ASSERT_TRUE(i == 0 || tuttiStreamQuery(*recent) == tuttiInvalidArgument) << "stream " << i;
  }
  EXPECT_LT(std::set(handles.begin(), handles.end()).size(), 1100u) << "handles of ended streams pile up";
}

// CUDA's special streams are small numbers, and a foreign pointer may point anywhere.
TEST(Stream, AForeignStreamIsAnArgumentError) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    for (const uintptr_t number : {uintptr_t{1}, uintptr_t{2}, ~uintptr_t{0}}) {
      const auto stream = reinterpret_cast<tuttiStream_t>(number);
      EXPECT_EQ(tuttiBarrier(comm, stream), tuttiInvalidArgument);
      EXPECT_NE(std::string(tuttiGetLastError(comm)).find("tuttiBarrier: stream is not one made by tuttiStreamCreate"),
                std::string::npos)
          << tuttiGetLastError(comm);
      EXPECT_EQ(tuttiStreamSynchronize(stream), tuttiInvalidArgument);
      EXPECT_EQ(tuttiStreamQuery(stream), tuttiInvalidArgument);
      EXPECT_EQ(tuttiStreamDestroy(stream), tuttiInvalidArgument);
    }
  });
}

TEST(Stream, AStreamWhoseOperationFailedIsDestroyedAllTheSame) {
  std::latch bothCalled{2};
  withCommunicators(2, testConfig(), [&](tuttiComm_t comm, int rank) {
    tuttiStream_t stream = nullptr;
    CHECK_TUTTI(tuttiStreamCreate(&stream, 0));
    int value = 1;
    CHECK_TUTTI(
        tuttiAllReduce(&value, &value, rank == 0 ? 1 : 0, tuttiInt32, rank == 0 ? tuttiSum : tuttiMax, comm, stream));
    bothCalled.arrive_and_wait();
    if (rank == 1) CHECK_TUTTI(tuttiCommRevoke(comm, 0));
    const tuttiResult_t result = tuttiStreamDestroy(stream);
    EXPECT_TRUE(rank == 1 || result != tuttiSuccess) << "it says what tuttiStreamSynchronize would";
    EXPECT_EQ(tuttiStreamDestroy(stream), tuttiInvalidArgument);
    EXPECT_NE(std::string(tuttiGetLastError(nullptr)).find("stream was destroyed"), std::string::npos);
  });
}

TEST(Stream, ADestroyedStreamIsAnArgumentError) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    tuttiStream_t stream = nullptr;
    CHECK_TUTTI(tuttiStreamCreate(&stream, 0));
    CHECK_TUTTI(tuttiStreamDestroy(stream));
    EXPECT_EQ(tuttiBarrier(comm, stream), tuttiInvalidArgument);
    EXPECT_NE(std::string(tuttiGetLastError(comm)).find("stream was destroyed"), std::string::npos);
    EXPECT_EQ(tuttiStreamSynchronize(stream), tuttiInvalidArgument);
  });
}

}  // namespace
