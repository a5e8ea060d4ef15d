// The end of a communicator with work on its GPU: what is queued runs to its end, and what waits for a rank that never
// comes ends with an error that says so.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "emulation/device_fixture.h"

#include "support/api_ranks.h"

namespace tutti::test {
namespace {

using device::test::Gate;
using device::test::Stream;

// Two ranks of one GPU, each on a stream of its own, which the tests destroy themselves.
class DeviceDestroy : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TUTTI_GPU_BUFFER_MIB", "1", 1);
    ::setenv("TUTTI_CHANNELS", "2", 1);
    const int devices[2] = {0, 0};
    CHECK_TUTTI(tuttiCommInitAll(comms_, 2, devices));  // an operation may last for half an hour
  }
  void TearDown() override {
    ::unsetenv("TUTTI_GPU_BUFFER_MIB");
    ::unsetenv("TUTTI_CHANNELS");
    for (const Stream& stream : streams_) EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  }
  void reduce(int rank) {
    int32_t* const own = values_[rank];
    CHECK_TUTTI(tuttiAllReduce(own, own, kCount, tuttiInt32, tuttiSum, comms_[rank], streams_[rank]));
  }
  tuttiResult_t failureOf(int rank) {
    tuttiResult_t state = tuttiSuccess;
    for (int i = 0; i < 12'000 && state == tuttiSuccess; ++i) {  // a minute
      CHECK_TUTTI(tuttiCommGetAsyncError(comms_[rank], &state));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return state;
  }
  void expectWords(int rank, std::initializer_list<const char*> words) {
    const std::string text = tuttiGetLastError(comms_[rank]);
    for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' in: " << text;
  }

  static constexpr size_t kCount = 1000;
  tuttiComm_t comms_[2] = {};
  Stream streams_[2];
  int32_t values_[2][kCount] = {};
};

TEST_F(DeviceDestroy, RunsWhatIsQueuedToItsEnd) {
  for (auto& own : values_) std::fill(std::begin(own), std::end(own), 21);
  Gate gate;
  gate.close(streams_[1]);
  for (int rank = 0; rank < 2; ++rank) reduce(rank);
  std::vector<std::thread> destroyers;
  for (int rank = 0; rank < 2; ++rank)
    destroyers.emplace_back([this, rank] { EXPECT_EQ(tuttiCommDestroy(comms_[rank]), tuttiSuccess); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  gate.open();
  for (std::thread& thread : destroyers) thread.join();
  for (const auto& own : values_)
    for (const int32_t value : own) ASSERT_EQ(value, 42);
}

// What runs is no state of the communicator: whether it does is asked for by itself.
TEST_F(DeviceDestroy, WorkThatIsQueuedIsSuccess) {
  Gate gate;
  gate.close(streams_[1]);
  for (int rank = 0; rank < 2; ++rank) reduce(rank);
  tuttiResult_t state = tuttiInternalError;
  int idle = -1;
  CHECK_TUTTI(tuttiCommGetAsyncError(comms_[0], &state));
  CHECK_TUTTI(tuttiCommIdle(comms_[0], &idle));
  EXPECT_EQ(state, tuttiSuccess);
  EXPECT_EQ(idle, 0);
  gate.open();
  for (const Stream& stream : streams_) EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  CHECK_TUTTI(tuttiCommIdle(comms_[0], &idle));
  EXPECT_EQ(idle, 1);
  for (const tuttiComm_t comm : comms_) EXPECT_EQ(tuttiCommDestroy(comm), tuttiSuccess);
}

TEST_F(DeviceDestroy, OfARankEndsWhatWaitsForIt) {
  reduce(0);
  EXPECT_EQ(tuttiCommDestroy(comms_[1]), tuttiSuccess);
  EXPECT_EQ(failureOf(0), tuttiRemoteError);
  expectWords(0, {"rank 1 (", "has left", "all-reduce #0", "rank 0 still waits"});
  EXPECT_EQ(tuttiCommDestroy(comms_[0]), tuttiSuccess);
}

TEST_F(DeviceDestroy, WaitsNoLongerThanForTheRanksThatAreStillThere) {
  reduce(0);
  std::thread other([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(tuttiCommDestroy(comms_[1]), tuttiSuccess);
  });
  EXPECT_EQ(tuttiCommDestroy(comms_[0]), tuttiSuccess);
  other.join();
}

// Neither sends, so that no kernel sees the other's call.
TEST_F(DeviceDestroy, CallsThatWaitForEachOtherAreNamed) {
  for (int rank = 0; rank < 2; ++rank)
    CHECK_TUTTI(
        tuttiBroadcast(values_[rank], values_[rank], kCount, tuttiInt32, 1 - rank, comms_[rank], streams_[rank]));
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(failureOf(rank), tuttiInvalidUsage);
    expectWords(rank, {"calls do not match", "root 0", "root 1"});
    EXPECT_EQ(tuttiCommDestroy(comms_[rank]), tuttiSuccess);
  }
}

}  // namespace
}  // namespace tutti::test
