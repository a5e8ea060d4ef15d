// What a communicator says of its state, and which error texts a thread sees that has not made the calls.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "support/api_ranks.h"

namespace {

using namespace tutti::test;

constexpr const char* kTransports[] = {"p2p", "shm", "tcp"};

tuttiResult_t stateOf(tuttiComm_t comm) {
  tuttiResult_t state = tuttiInternalError;
  CHECK_TUTTI(tuttiCommGetAsyncError(comm, &state));
  return state;
}

int idle(tuttiComm_t comm) {
  int answer = -1;
  CHECK_TUTTI(tuttiCommIdle(comm, &answer));
  return answer;
}

struct Queue {
  Queue() { CHECK_TUTTI(tuttiStreamCreate(&stream, 0)); }
  ~Queue() { EXPECT_EQ(tuttiStreamDestroy(stream), tuttiSuccess); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  tuttiStream_t stream = nullptr;
};

// Two ranks, each on a thread: rank 0 queues a barrier, to which rank 1 comes when rank 0 has looked at its state.
template <class Look>
void whileABarrierIsQueued(tuttiConfig_t config, Look look) {
  std::atomic<bool> looked{false};
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  runRanks(2, [&](int rank) {
    tuttiComm_t comm = nullptr;
    const auto begun = tuttiCommInitRankConfig(&comm, 2, id, rank, &config);
    EXPECT_EQ(begun, config.nonBlocking ? tuttiInProgress : tuttiSuccess);
    EXPECT_EQ(outcomeOf(comm), tuttiSuccess) << tuttiGetLastError(comm);
    const Queue queue;
    if (rank == 1) looked.wait(false);
    CHECK_TUTTI(tuttiBarrier(comm, queue.stream));
    if (rank == 0) {
      look(comm);
      looked = true;
      looked.notify_all();
    }
    CHECK_TUTTI(tuttiStreamSynchronize(queue.stream));
    EXPECT_EQ(outcomeOf(comm), tuttiSuccess);
    EXPECT_EQ(idle(comm), 1);
    EXPECT_EQ(tuttiCommFinalize(comm), tuttiSuccess) << "nothing is queued";
    EXPECT_EQ(stateOf(comm), tuttiSuccess);
    CHECK_TUTTI(tuttiCommDestroy(comm));
  });
}

TEST(State, WorkThatIsQueuedIsSuccess) {
  for (const char* transports : kTransports) {
    tuttiConfig_t config = testConfig();
    config.transports = transports;
    whileABarrierIsQueued(config, [](tuttiComm_t comm) {
      EXPECT_EQ(stateOf(comm), tuttiSuccess);
      EXPECT_EQ(idle(comm), 0);
      int seen = -1;
      std::thread([&] { seen = idle(comm); }).join();
      EXPECT_EQ(seen, 0) << "any thread may ask";
    });
  }
}

TEST(State, FinalizingWithoutWaitingIsInProgressUntilItIsDone) {
  for (const char* transports : kTransports) {
    tuttiConfig_t config = testConfig();
    config.transports = transports;
    config.nonBlocking = 1;
    whileABarrierIsQueued(config, [](tuttiComm_t comm) {
      EXPECT_EQ(stateOf(comm), tuttiSuccess);
      for (int again = 0; again < 2; ++again) EXPECT_EQ(tuttiCommFinalize(comm), tuttiInProgress);
      EXPECT_EQ(stateOf(comm), tuttiInProgress);
      EXPECT_EQ(idle(comm), 0);
    });
  }
}

TEST(State, FinalizingWaitsOtherwise) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    const Queue queue;
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK_TUTTI(tuttiBarrier(comm, queue.stream));
    EXPECT_EQ(tuttiCommFinalize(comm), tuttiSuccess);
    EXPECT_EQ(idle(comm), 1);
  });
}

// The error of what stops it comes before the news that it goes on.
TEST(State, FinalizingThatFailsSaysSo) {
  tuttiConfig_t config = testConfig();
  config.nonBlocking = 1;
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  std::atomic<bool> finalizing{false};
  runRanks(2, [&](int rank) {
    tuttiComm_t comm = nullptr;
    EXPECT_EQ(tuttiCommInitRankConfig(&comm, 2, id, rank, &config), tuttiInProgress);
    EXPECT_EQ(outcomeOf(comm), tuttiSuccess);
    if (rank == 1) {
      finalizing.wait(false);
      return CHECK_TUTTI(tuttiCommAbort(comm));
    }
    tuttiStream_t stream = nullptr;
    CHECK_TUTTI(tuttiStreamCreate(&stream, 0));
    CHECK_TUTTI(tuttiBarrier(comm, stream));
    EXPECT_EQ(tuttiCommFinalize(comm), tuttiInProgress);
    finalizing = true;
    finalizing.notify_all();
    EXPECT_EQ(tuttiStreamDestroy(stream), tuttiRemoteError);
    EXPECT_EQ(outcomeOf(comm), tuttiRemoteError);
    CHECK_TUTTI(tuttiCommDestroy(comm));
  });
}

// Which joins in the background, in vain.
tuttiComm_t firstOfTwo() {
  tuttiConfig_t config = testConfig();
  config.nonBlocking = 1;
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiComm_t comm = nullptr;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 2, id, 0, &config), tuttiInProgress);
  return comm;
}

TEST(State, NothingIsQueuedWhileItJoins) {
  tuttiComm_t comm = firstOfTwo();
  EXPECT_EQ(stateOf(comm), tuttiInProgress);
  EXPECT_EQ(idle(comm), 1);
  EXPECT_EQ(tuttiCommFinalize(comm), tuttiInvalidUsage) << "it is still joining";
  CHECK_TUTTI(tuttiCommAbort(comm));
}

TEST(State, IdleChecksItsArguments) {
  tuttiComm_t comm = nullptr;
  CHECK_TUTTI(tuttiCommInitAll(&comm, 1, nullptr));
  EXPECT_EQ(tuttiCommIdle(comm, nullptr), tuttiInvalidArgument);
  EXPECT_STREQ(tuttiGetLastError(comm), "tuttiCommIdle: idle is NULL");
  CHECK_TUTTI(tuttiCommDestroy(comm));
  int answer = 0;
  EXPECT_EQ(tuttiCommIdle(comm, &answer), tuttiInvalidArgument);
  EXPECT_STREQ(tuttiGetLastError(nullptr), "tuttiCommIdle: comm (rank 0) was destroyed");
  EXPECT_EQ(tuttiCommIdle(nullptr, &answer), tuttiInvalidArgument);
}

TEST(State, EndingNothingIsNoError) {
  for (const auto end : {tuttiCommFinalize, tuttiCommDestroy, tuttiCommAbort}) EXPECT_EQ(end(nullptr), tuttiSuccess);
}

// On a thread of its own, where no call was made before.
std::string onAThread(const char* (*ask)()) {
  std::string text;
  std::thread([&] { text = ask(); }).join();
  return text;
}
std::string toAWatchdog() { return onAThread(tuttiGetLastProcessError); }

TEST(State, AWatchdogSeesTheNewestErrorOfAnyThread) {
  int count = 0;
  EXPECT_EQ(tuttiCommCount(nullptr, &count), tuttiInvalidArgument);
  EXPECT_EQ(toAWatchdog(), "tuttiCommCount: comm is NULL");
  EXPECT_EQ(onAThread([] { return tuttiGetLastError(nullptr); }), "") << "that one is the thread's";
  std::thread([] { tuttiBarrier(nullptr, nullptr); }).join();
  EXPECT_EQ(toAWatchdog(), "tuttiBarrier: comm is NULL");
  EXPECT_STREQ(tuttiGetLastProcessError(), "tuttiBarrier: comm is NULL");
  EXPECT_STREQ(tuttiGetLastError(nullptr), "tuttiCommCount: comm is NULL");
}

TEST(State, ALongTextIsWholeForAWatchdogAndAShortOneFollowsIt) {
  const std::string name(5000, 'x');
  tuttiConfig_t config = testConfig();
  config.transports = name.c_str();
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiComm_t comm = nullptr;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 1, id, 0, &config), tuttiInvalidArgument);
  const std::string text = tuttiGetLastError(nullptr);
  EXPECT_GT(text.size(), 128u);
  EXPECT_EQ(toAWatchdog(), text);
  tuttiBarrier(nullptr, nullptr);
  EXPECT_EQ(toAWatchdog(), "tuttiBarrier: comm is NULL");
}

TEST(State, AWatchdogSeesWhyAJoinInTheBackgroundFailed) {
  tuttiConfig_t config = testConfig();
  config.nonBlocking = 1;
  config.joinTimeoutMs = 1000;
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiComm_t comm = nullptr;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 2, id, 1, &config), tuttiInProgress);
  EXPECT_EQ(outcomeOf(comm), tuttiTimeout);
  EXPECT_NE(toAWatchdog().find("missing: rank 0"), std::string::npos) << toAWatchdog();
  CHECK_TUTTI(tuttiCommDestroy(comm));
}

// Its own thread gives up joining some time after the abort; whoever aborted it has gone on meanwhile.
TEST(State, AnAbortedJoinIsNoNewsForAWatchdog) {
  CHECK_TUTTI(tuttiCommAbort(firstOfTwo()));
  tuttiBarrier(nullptr, nullptr);
  for (int i = 0; i < 40; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_EQ(toAWatchdog(), "tuttiBarrier: comm is NULL");
  }
}

// A watchdog that asks for the state learns what other ranks did, and has the words for it.
TEST(State, AWatchdogSeesWhatStoppedACommunicator) {
  tuttiComm_t comms[2] = {};
  CHECK_TUTTI(tuttiCommInitAll(comms, 2, nullptr));
  CHECK_TUTTI(tuttiCommAbort(comms[0]));
  std::thread([comm = comms[1]] {
    for (int i = 0; i < 4000 && stateOf(comm) == tuttiSuccess; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_NE(std::strstr(tuttiGetLastProcessError(), "called tuttiCommAbort"), nullptr) << tuttiGetLastProcessError();
  }).join();
  CHECK_TUTTI(tuttiCommDestroy(comms[1]));
}

// A call that is refused for its arguments meanwhile is not why.
TEST(State, WhatStoppedACommunicatorIsToldBehindARefusedCall) {
  tuttiComm_t comms[2] = {};
  CHECK_TUTTI(tuttiCommInitAll(comms, 2, nullptr));
  CHECK_TUTTI(tuttiCommAbort(comms[0]));
  const auto tells = [&] { return std::strstr(tuttiGetLastError(comms[1]), "called tuttiCommAbort") != nullptr; };
  for (int i = 0; i < 4000 && !tells(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  int value = 1;
  EXPECT_EQ(tuttiAllReduce(&value, nullptr, 1, tuttiInt32, tuttiSum, comms[1], nullptr), tuttiInvalidArgument);
  EXPECT_NE(std::strstr(tuttiGetLastError(nullptr), "tuttiAllReduce"), nullptr);
  EXPECT_TRUE(tells()) << tuttiGetLastError(comms[1]);
  EXPECT_EQ(stateOf(comms[1]), tuttiRemoteError);
  EXPECT_TRUE(tells()) << tuttiGetLastError(comms[1]);
  CHECK_TUTTI(tuttiCommDestroy(comms[1]));
}

// Whole texts, whoever writes meanwhile; of what races there, a sanitizer tells.
TEST(State, ManyThreadsWriteAndReadTheProcesssText) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      const std::string name(static_cast<size_t>(100 + 200 * t), static_cast<char>('a' + t));
      tuttiConfig_t config = testConfig();
      config.algorithm = name.c_str();
      tuttiComm_t comm = nullptr;
      for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(tuttiCommInitEnv(&comm, &config), tuttiInvalidArgument);
        EXPECT_EQ(std::string(tuttiGetLastProcessError()).find("tuttiCommInitEnv: config.algorithm: '"), 0u);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
