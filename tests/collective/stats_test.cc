// What a communicator tells of the calls that it has made: how many bytes, how long, and whom they waited for.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include "support/api_ranks.h"
#include "support/lacking.h"

namespace {

using namespace tutti::test;

tuttiCommStats_t statsOf(tuttiComm_t comm) {
  tuttiCommStats_t stats{};
  stats.size = sizeof stats;
  CHECK_TUTTI(tuttiCommGetStats(comm, &stats));
  return stats;
}

class Stats : public testing::TestWithParam<const char*> {
 protected:
  static tuttiConfig_t config() {
    tuttiConfig_t config = testConfig();
    config.transports = GetParam();
    return config;
  }
};
INSTANTIATE_TEST_SUITE_P(Over, Stats, testing::Values("shm", "tcp", "p2p"),
                         [](const auto& of) { return std::string(of.param); });

TEST_P(Stats, CountTheBytesOfCallsThatWentWell) {
  withCommunicators(3, config(), [](tuttiComm_t comm, int rank) {
    std::vector<float> data(1000, 1);
    std::vector<short> gathered(3 * 7);
    const tuttiCommStats_t before = statsOf(comm);
    for (int i = 0; i < 300; ++i)  // more than are kept of single calls
      CHECK_TUTTI(tuttiAllReduce(data.data(), data.data(), data.size(), tuttiFloat32, tuttiMax, comm, nullptr));
    CHECK_TUTTI(
        tuttiAllGather(&gathered[7 * static_cast<size_t>(rank)], gathered.data(), 7, tuttiInt16, comm, nullptr));
    EXPECT_EQ(tuttiBroadcast(nullptr, nullptr, 5, tuttiInt8, 0, comm, nullptr), tuttiInvalidArgument);
    const tuttiCommStats_t after = statsOf(comm);
    EXPECT_EQ(after.bytes - before.bytes, 300u * 4000 + 7 * 2);
    EXPECT_GT(after.nanoseconds, before.nanoseconds);
  });
}

// Of single calls so many are not kept: the first are forgotten before they run.
TEST_P(Stats, CountWhatWaitsOnAStream) {
  withCommunicators(2, config(), [](tuttiComm_t comm, int) {
    constexpr int kCalls = 600;
    std::vector<float> data(100, 1);
    tuttiStream_t stream = nullptr;
    CHECK_TUTTI(tuttiStreamCreate(&stream, 0));
    const uint64_t before = statsOf(comm).bytes;
    for (int i = 0; i < kCalls; ++i)
      CHECK_TUTTI(tuttiAllReduce(data.data(), data.data(), data.size(), tuttiFloat32, tuttiMax, comm, stream));
    CHECK_TUTTI(tuttiStreamSynchronize(stream));
    EXPECT_EQ(statsOf(comm).bytes - before, kCalls * data.size() * sizeof(float));
    CHECK_TUTTI(tuttiStreamDestroy(stream));
  });
}

TEST_P(Stats, CountCallsWithTables) {
  withCommunicators(2, config(), [](tuttiComm_t comm, int rank) {
    const size_t counts[2] = {3, 5}, offsets[2] = {0, 3};
    std::vector<int> all(8), mine(counts[rank]), fromEach(2 * mine.size());
    const size_t sent[2] = {counts[0], counts[1]}, expected[2] = {mine.size(), mine.size()},
                 places[2] = {0, mine.size()};
    const uint64_t before = statsOf(comm).bytes;
    CHECK_TUTTI(tuttiAllGatherV(mine.data(), all.data(), counts, offsets, tuttiInt32, comm, nullptr));
    EXPECT_EQ(statsOf(comm).bytes - before, 8 * sizeof(int));
    CHECK_TUTTI(
        tuttiAllToAllV(all.data(), sent, offsets, fromEach.data(), expected, places, tuttiInt32, comm, nullptr));
    EXPECT_EQ(statsOf(comm).bytes - before, (8 + fromEach.size()) * sizeof(int));
  });
}

TEST_P(Stats, CountMessagesToo) {
  withCommunicators(2, config(), [](tuttiComm_t comm, int rank) {
    int value = rank, other = -1;
    tuttiStream_t stream = nullptr;
    CHECK_TUTTI(tuttiStreamCreate(&stream, 0));
    const uint64_t before = statsOf(comm).bytes;
    for (int i = 0; i < 10; ++i) {
      CHECK_TUTTI(tuttiGroupStart());
      CHECK_TUTTI(tuttiSend(&value, 1, tuttiInt32, 1 - rank, comm, stream));
      CHECK_TUTTI(tuttiRecv(&other, 1, tuttiInt32, 1 - rank, comm, stream));
      CHECK_TUTTI(tuttiGroupEnd());
    }
    CHECK_TUTTI(tuttiStreamSynchronize(stream));
    EXPECT_EQ(statsOf(comm).bytes - before, 10u * 2 * sizeof value);
    CHECK_TUTTI(tuttiStreamDestroy(stream));
  });
}

TEST_P(Stats, ACallThatFailsDoesNotCount) {
  std::barrier both(2);  // a rank that has left the barrier below may revoke what the other one is still in
  withCommunicators(2, config(), [&both](tuttiComm_t comm, int) {
    CHECK_TUTTI(tuttiBarrier(comm, nullptr));
    both.arrive_and_wait();
    const uint64_t before = statsOf(comm).bytes;
    CHECK_TUTTI(tuttiCommRevoke(comm, 0));
    int value = 1;
    EXPECT_EQ(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr), tuttiRemoteError);
    EXPECT_EQ(statsOf(comm).bytes, before);
  });
}

// Until it shows: how long the others are really ahead of rank 1 depends on the machine.
TEST_P(Stats, NameTheRankThatTheOthersWaitedFor) {
  withCommunicators(3, config(), [](tuttiComm_t comm, int rank) {
    const auto shows = [&] {
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      CHECK_TUTTI(tuttiBarrier(comm, nullptr));
      uint64_t waits[3] = {};
      CHECK_TUTTI(tuttiCommGetWaits(comm, waits, 3));
      EXPECT_EQ(waits[rank], 0u);
      int seen = rank != 1 && waits[1] > 10'000'000;
      CHECK_TUTTI(tuttiAllReduce(&seen, &seen, 1, tuttiInt32, tuttiMax, comm, nullptr));
      return seen == 1;
    };
    EXPECT_TRUE(comesTrue(shows));
  });
}

// As an exporter of metrics does, which knows nothing of the program's calls. Neither is refused for the other.
TEST_P(Stats, AreToldToAnyThreadWhileCallsRun) {
  withCommunicators(2, config(), [](tuttiComm_t comm, int) {
    std::atomic<bool> done{false};
    std::atomic<int> asked{0};
    std::thread exporter([&] {
      uint64_t waits[2] = {}, last = 0;
      for (; !done || asked == 0; ++asked) {
        const uint64_t bytes = statsOf(comm).bytes;
        EXPECT_GE(bytes, last);
        last = bytes;
        CHECK_TUTTI(tuttiCommGetWaits(comm, waits, 2));
      }
    });
    std::vector<float> data(100, 1);
    for (int i = 0; i < 2000; ++i)
      CHECK_TUTTI(tuttiAllReduce(data.data(), data.data(), data.size(), tuttiFloat32, tuttiMax, comm, nullptr));
    done = true;
    exporter.join();
    EXPECT_EQ(statsOf(comm).bytes, 2000u * 400);
  });
}

TEST(StatsOf, WaitsWantAnEntryARank) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int) {
    uint64_t waits[3] = {};
    EXPECT_EQ(tuttiCommGetWaits(comm, waits, 3), tuttiInvalidArgument);
    EXPECT_NE(std::string(tuttiGetLastError(comm)).find("ranks is 3: the communicator has 2"), std::string::npos);
    EXPECT_EQ(tuttiCommGetWaits(comm, nullptr, 2), tuttiInvalidArgument);
    EXPECT_EQ(tuttiCommGetWaits(nullptr, waits, 2), tuttiInvalidArgument);
    CHECK_TUTTI(tuttiCommGetWaits(comm, waits, 2));
  });
}

}  // namespace
