// Requests: handles for single operations, and persistent calls.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "support/api_ranks.h"
#include "support/every_call.h"

namespace {

using namespace tutti::test;

class Request : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Over, Request, testing::Values("p2p", "shm", "tcp"),
                         [](const auto& one) { return one.param; });
class Persistent : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Over, Persistent, testing::Values("p2p", "shm", "tcp"),
                         [](const auto& one) { return one.param; });

tuttiConfig_t over(const char* transport) {
  tuttiConfig_t config = testConfig();
  config.transports = transport;
  return config;
}

struct OwnStream {
  OwnStream() { CHECK_TUTTI(tuttiStreamCreate(&stream, 0)); }
  ~OwnStream() { tuttiStreamDestroy(stream); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  tuttiStream_t stream = nullptr;
};

std::string threadText() { return tuttiGetLastError(nullptr); }

void expectText(const std::string& text) {
  EXPECT_NE(threadText().find(text), std::string::npos) << threadText() << "\nhas no\n" << text;
}

TEST_P(Request, WithoutAStreamTheOperationHasEnded) {
  withCommunicators(2, over(GetParam()), [](tuttiComm_t comm, int rank) {
    EveryCallBuffers at(rank, 2);
    for (const auto& call : everyCollective(at, comm, nullptr)) {
      tuttiRequest_t request = nullptr;
      const tuttiCallConfig_t config = callConfig(&request);
      CHECK_TUTTI(call.make(&config));
      EXPECT_EQ(tuttiRequestTest(request), tuttiSuccess) << call.name;
      EXPECT_TRUE(call.right()) << call.name;
      EXPECT_EQ(tuttiRequestWait(request), tuttiSuccess);
      EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
    }
  });
}

TEST_P(Request, OnAStreamItTellsOfItsOperationAlone) {
  withCommunicators(2, over(GetParam()), [](tuttiComm_t comm, int rank) {
    OwnStream on;
    std::vector<int> first(20'000, rank + 1);
    int late = rank + 1;
    tuttiRequest_t one = nullptr, other = nullptr;
    tuttiCallConfig_t config = callConfig(&one);
    CHECK_TUTTI(
        tuttiAllReduceConfig(first.data(), first.data(), first.size(), tuttiInt32, tuttiSum, comm, on.stream, &config));
    config.request = &other;
    if (rank == 0) CHECK_TUTTI(tuttiAllReduceConfig(&late, &late, 1, tuttiInt32, tuttiSum, comm, on.stream, &config));
    EXPECT_EQ(tuttiRequestWait(one), tuttiSuccess);
    EXPECT_EQ(first, std::vector<int>(20'000, 3));
    if (rank == 0) {
      EXPECT_EQ(tuttiRequestTest(other), tuttiInProgress) << "the other rank has not made that call";
      CHECK_TUTTI(tuttiSend(&rank, 1, tuttiInt32, 1, comm, nullptr));
    } else {
      int ignored = 0;
      CHECK_TUTTI(tuttiRecv(&ignored, 1, tuttiInt32, 0, comm, nullptr));
      CHECK_TUTTI(tuttiAllReduceConfig(&late, &late, 1, tuttiInt32, tuttiSum, comm, on.stream, &config));
    }
    while (tuttiRequestTest(other) == tuttiInProgress) std::this_thread::yield();
    EXPECT_EQ(tuttiRequestTest(other), tuttiSuccess);
    EXPECT_EQ(late, 3);
    EXPECT_EQ(tuttiRequestFree(one), tuttiSuccess);
    EXPECT_EQ(tuttiRequestFree(other), tuttiSuccess);
  });
}

TEST_P(Request, OfCallsInAGroupIsUnderWayUntilItsEnd) {
  withCommunicators(2, over(GetParam()), [](tuttiComm_t comm, int rank) {
    OwnStream on;
    int out = rank, in = -1, sum = rank + 1;
    tuttiRequest_t requests[3] = {};
    tuttiCallConfig_t config = callConfig();
    CHECK_TUTTI(tuttiGroupStart());
    config.request = &requests[0];
    CHECK_TUTTI(tuttiSendConfig(&out, 1, tuttiInt32, 1 - rank, comm, nullptr, &config));
    config.request = &requests[1];
    CHECK_TUTTI(tuttiRecvConfig(&in, 1, tuttiInt32, 1 - rank, comm, nullptr, &config));
    config.request = &requests[2];
    CHECK_TUTTI(tuttiAllReduceConfig(&sum, &sum, 1, tuttiInt32, tuttiSum, comm, on.stream, &config));
    for (const tuttiRequest_t request : requests) EXPECT_EQ(tuttiRequestTest(request), tuttiInProgress);
    CHECK_TUTTI(tuttiGroupEnd());
    EXPECT_EQ(tuttiRequestTest(requests[0]), tuttiSuccess);
    EXPECT_EQ(tuttiRequestTest(requests[1]), tuttiSuccess);
    EXPECT_EQ(tuttiRequestWait(requests[2]), tuttiSuccess);
    EXPECT_EQ(in, 1 - rank);
    EXPECT_EQ(sum, 3);
    for (const tuttiRequest_t request : requests) EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
  });
}

TEST(RequestOf, AGroupThatDoesNotRunFailsWithIt) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    int value = 1;
    tuttiRequest_t request = nullptr;
    const tuttiCallConfig_t config = callConfig(&request);
    CHECK_TUTTI(tuttiGroupStart());
    CHECK_TUTTI(tuttiAllReduceConfig(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr, &config));
    EXPECT_EQ(tuttiAllReduce(nullptr, &value, 1, tuttiInt32, tuttiSum, comm, nullptr), tuttiInvalidArgument);
    EXPECT_EQ(tuttiGroupEnd(), tuttiInvalidArgument);
    EXPECT_EQ(tuttiRequestWait(request), tuttiInvalidArgument);
    expectText("send is NULL");
    EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
  });
}

TEST(RequestOf, ACallIsNotWaitedForInTheGroupThatHasCollectedIt) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    int value = 1, before = 1;
    tuttiRequest_t request = nullptr, ended = nullptr;
    tuttiCallConfig_t config = callConfig(&ended);
    CHECK_TUTTI(tuttiAllReduceConfig(&before, &before, 1, tuttiInt32, tuttiSum, comm, nullptr, &config));
    config = callConfig(&request, TUTTI_CALL_PERSISTENT);
    CHECK_TUTTI(tuttiAllReduceConfig(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr, &config));
    CHECK_TUTTI(tuttiGroupStart());
    EXPECT_EQ(tuttiRequestWait(request), tuttiSuccess) << "it is ready, and nothing of it is in the group";
    CHECK_TUTTI(tuttiRequestStart(request));
    EXPECT_EQ(tuttiRequestWait(request), tuttiInvalidUsage);
    expectText("end that group first (tuttiGroupEnd)");
    EXPECT_EQ(tuttiRequestWait(ended), tuttiSuccess) << "it is of a call outside of the group";
    CHECK_TUTTI(tuttiGroupEnd());
    EXPECT_EQ(tuttiRequestWait(request), tuttiSuccess);
    EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
    EXPECT_EQ(tuttiRequestFree(ended), tuttiSuccess);
  });
}

TEST(RequestOf, AThreadThatEndsInItsGroupIsNotWaitedFor) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    int value = 1;
    tuttiRequest_t request = nullptr;
    std::thread([&] {
      const tuttiCallConfig_t config = callConfig(&request);
      CHECK_TUTTI(tuttiGroupStart());
      CHECK_TUTTI(tuttiAllReduceConfig(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr, &config));
    }).join();
    EXPECT_EQ(tuttiRequestWait(request), tuttiInvalidUsage);
    expectText("has not come to its end");
    EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
  });
}

TEST(RequestOf, AnyThreadMayWaitAndLearnsOfTheFailure) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    OwnStream on;
    int value = 1;
    tuttiRequest_t request = nullptr;
    const tuttiCallConfig_t config = callConfig(&request);
    CHECK_TUTTI(
        tuttiAllReduceConfig(&value, &value, 1, tuttiInt32, rank == 0 ? tuttiSum : tuttiMax, comm, on.stream, &config));
    std::vector<std::thread> waiting;
    for (int i = 0; i < 3; ++i)
      waiting.emplace_back([&] {
        EXPECT_EQ(tuttiRequestWait(request), tuttiInvalidUsage);
        expectText("calls do not match");
        EXPECT_EQ(tuttiRequestTest(request), tuttiInvalidUsage);
      });
    for (std::thread& one : waiting) one.join();
    EXPECT_NE(std::string(tuttiGetLastError(comm)).find("calls do not match"), std::string::npos);
    EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
  });
}

TEST(RequestOf, MayBeFreedWhileTheOperationRuns) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    OwnStream on;
    std::vector<int> data(100'000, rank + 1);
    for (int i = 0; i < 20; ++i) {
      tuttiRequest_t request = nullptr;
      const tuttiCallConfig_t config = callConfig(&request);
      CHECK_TUTTI(
          tuttiAllReduceConfig(data.data(), data.data(), data.size(), tuttiInt32, tuttiMax, comm, on.stream, &config));
      EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
    }
    CHECK_TUTTI(tuttiStreamSynchronize(on.stream));
    EXPECT_EQ(data, std::vector<int>(100'000, 2));
  });
}

TEST(RequestOf, IsThereAfterTheCommunicatorsEnd) {
  tuttiRequest_t requests[2] = {};
  withCommunicators(2, testConfig(), [&](tuttiComm_t comm, int rank) {
    int value = rank;
    const tuttiCallConfig_t config = callConfig(&requests[rank]);
    CHECK_TUTTI(tuttiAllReduceConfig(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr, &config));
  });
  for (const tuttiRequest_t request : requests) {
    EXPECT_EQ(tuttiRequestWait(request), tuttiSuccess);
    EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
  }
}

TEST(RequestOf, HandlesThatAreNoneAreArgumentErrors) {
  int elsewhere = 0;
  withCommunicators(1, testConfig(), [&](tuttiComm_t comm, int) {
    tuttiRequest_t freed = nullptr;
    tuttiCallConfig_t config = callConfig(&freed);
    CHECK_TUTTI(tuttiBarrierConfig(comm, nullptr, &config));
    EXPECT_EQ(tuttiRequestStart(freed), tuttiInvalidUsage) << "it is of a single operation";
    expectText("TUTTI_CALL_PERSISTENT");
    CHECK_TUTTI(tuttiRequestFree(freed));
    const struct {
      tuttiRequest_t request;
      const char* text;
    } cases[] = {{nullptr, "request is NULL"},
                 {reinterpret_cast<tuttiRequest_t>(&elsewhere), "request is not one"},
                 {reinterpret_cast<tuttiRequest_t>(comm), "request is not one"},
                 {freed, "request was freed"}};
    for (const auto& one : cases)
      for (const auto call : {tuttiRequestTest, tuttiRequestWait, tuttiRequestStart, tuttiRequestFree}) {
        EXPECT_EQ(call(one.request), tuttiInvalidArgument);
        expectText(one.text);
      }
  });
}

TEST(RequestOf, ACallThatFailsGivesNone) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    auto request = reinterpret_cast<tuttiRequest_t>(uintptr_t{8});
    const tuttiCallConfig_t config = callConfig(&request);
    EXPECT_EQ(tuttiBarrierConfig(comm, reinterpret_cast<tuttiStream_t>(uintptr_t{1}), &config), tuttiInvalidArgument);
    EXPECT_EQ(request, nullptr);
  });
}

// Also where nobody comes to look at the configuration, or something else in it is wrong.
TEST(RequestOf, ARefusedCallGivesNone) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    const auto none = reinterpret_cast<tuttiRequest_t>(uintptr_t{8});
    tuttiRequest_t request = none;
    tuttiCallConfig_t config = callConfig(&request);
    int value = 0;
    EXPECT_EQ(tuttiAllReduceConfig(nullptr, &value, 1, tuttiInt32, tuttiSum, comm, nullptr, &config),
              tuttiInvalidArgument);
    EXPECT_EQ(std::exchange(request, none), nullptr);
    EXPECT_EQ(tuttiBarrierConfig(nullptr, nullptr, &config), tuttiInvalidArgument);
    EXPECT_EQ(std::exchange(request, none), nullptr);
    config.flags = 2;
    EXPECT_EQ(tuttiBarrierConfig(comm, nullptr, &config), tuttiInvalidArgument);
    EXPECT_EQ(std::exchange(request, none), nullptr);
    config.size = 1 << 20;  // of a struct that nobody has filled nothing is believed
    EXPECT_EQ(tuttiBarrierConfig(comm, nullptr, &config), tuttiInvalidArgument);
    EXPECT_EQ(request, none);
  });
}

TEST(RequestOf, AForkedChildCannotUseItsParents) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    tuttiRequest_t request = nullptr;
    const tuttiCallConfig_t config = callConfig(&request);
    CHECK_TUTTI(tuttiBarrierConfig(comm, nullptr, &config));
    const pid_t child = ::fork();
    if (child == 0) {
      const bool refused =
          tuttiRequestTest(request) == tuttiInvalidUsage && tuttiRequestFree(request) == tuttiInvalidUsage;
      ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
  });
}

// ---- persistent calls ----

void freeAll(std::vector<tuttiRequest_t>& requests) {
  for (const tuttiRequest_t request : requests) EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
}

// In turns with each other, and with other calls in between; several have one plan.
TEST_P(Persistent, EveryCollectiveRunsWhenItIsStarted) {
  withCommunicators(3, over(GetParam()), [](tuttiComm_t comm, int rank) {
    for (const bool streamed : {false, true}) {
      OwnStream own;
      const tuttiStream_t stream = streamed ? own.stream : nullptr;
      EveryCallBuffers at(rank, 3), untouched(rank, 3);
      const auto calls = everyCollective(at, comm, stream);
      std::vector<tuttiRequest_t> requests(2 * calls.size());
      for (size_t i = 0; i < requests.size(); ++i) {
        const tuttiCallConfig_t config = callConfig(&requests[i], TUTTI_CALL_PERSISTENT);
        CHECK_TUTTI(calls[i % calls.size()].make(&config));
      }
      for (const tuttiRequest_t request : requests) EXPECT_EQ(tuttiRequestWait(request), tuttiSuccess);
      EXPECT_EQ(at.out, untouched.out) << "nothing moves before a start";
      for (int round = 0; round < 3; ++round)
        for (size_t i = 0; i < requests.size(); ++i) {
          CHECK_TUTTI(tuttiRequestStart(requests[i]));
          if (i % 5 == 2) CHECK_TUTTI(tuttiBarrier(comm, nullptr));
          EXPECT_EQ(tuttiRequestWait(requests[i]), tuttiSuccess);
          EXPECT_TRUE(calls[i % calls.size()].right()) << calls[i % calls.size()].name << ", round " << round;
        }
      freeAll(requests);
    }
  });
}

TEST_P(Persistent, MessagesAndGroups) {
  withCommunicators(2, over(GetParam()), [](tuttiComm_t comm, int rank) {
    int out = 0, in = -1, self = 0, fromSelf = -1, sum = 0;
    std::vector<tuttiRequest_t> requests(5);
    tuttiCallConfig_t config = callConfig(nullptr, TUTTI_CALL_PERSISTENT);
    size_t made = 0;
    const auto next = [&] { return config.request = &requests[made++], &config; };
    CHECK_TUTTI(tuttiGroupStart());
    CHECK_TUTTI(tuttiSendConfig(&out, 1, tuttiInt32, 1 - rank, comm, nullptr, next()));
    CHECK_TUTTI(tuttiRecvConfig(&in, 1, tuttiInt32, 1 - rank, comm, nullptr, next()));
    CHECK_TUTTI(tuttiGroupEnd());
    CHECK_TUTTI(tuttiSendConfig(&self, 1, tuttiInt32, rank, comm, nullptr, next()));
    CHECK_TUTTI(tuttiRecvConfig(&fromSelf, 1, tuttiInt32, rank, comm, nullptr, next()));
    CHECK_TUTTI(tuttiAllReduceConfig(&out, &sum, 1, tuttiInt32, tuttiSum, comm, nullptr, next()));
    EXPECT_EQ(tuttiRequestStart(requests[2]), tuttiInvalidUsage) << "a message to oneself, outside of a group";
    expectText("belong in one group");
    for (int round = 0; round < 4; ++round) {
      out = self = 10 * round + rank;
      CHECK_TUTTI(tuttiGroupStart());
      for (const tuttiRequest_t request : requests) CHECK_TUTTI(tuttiRequestStart(request));
      EXPECT_EQ(tuttiRequestTest(requests[0]), tuttiInProgress);
      CHECK_TUTTI(tuttiGroupEnd());
      for (const tuttiRequest_t request : requests) EXPECT_EQ(tuttiRequestTest(request), tuttiSuccess);
      EXPECT_EQ(in, 10 * round + 1 - rank);
      EXPECT_EQ(fromSelf, 10 * round + rank);
      EXPECT_EQ(sum, 20 * round + 1);
    }
    freeAll(requests);
  });
}

TEST_P(Persistent, WithWhatTheCallAsksFor) {
  withCommunicators(3, over(GetParam()), [](tuttiComm_t comm, int rank) {
    std::vector<int> in(9000, rank + 1), out(9000, 0);
    std::vector<tuttiRequest_t> requests;
    for (const char* algorithm : {"ring", "tree", "oneshot"}) {
      tuttiCallConfig_t config = callConfig(&requests.emplace_back(), TUTTI_CALL_PERSISTENT);
      config.algorithm = algorithm;
      config.channels = 2;
      config.tag = 3;
      CHECK_TUTTI(tuttiAllReduceConfig(in.data(), out.data(), in.size(), tuttiInt32, tuttiSum, comm, nullptr, &config));
    }
    for (int i = 0; i < 9; ++i) {
      std::fill(out.begin(), out.end(), 0);
      CHECK_TUTTI(tuttiRequestStart(requests[static_cast<size_t>(i % 3)]));
      EXPECT_EQ(out, std::vector<int>(9000, 6));
    }
    freeAll(requests);
  });
}

// Whoever only sends may be done without the other, which finds what was sent in the next call of that way. And a call
// may still be made ready when the other finds out.
void expectNamedPersistent(size_t which, bool starts, const char* transport) {
  withCommunicators(2, over(transport), [&](tuttiComm_t comm, int rank) {
    EveryCallBuffers at(rank, 2);
    const auto call = everyCollective(at, comm, nullptr)[which];
    tuttiRequest_t request = nullptr;
    const tuttiCallConfig_t config = callConfig(&request, rank == 0 ? TUTTI_CALL_PERSISTENT : 0);
    tuttiResult_t result = call.make(&config);
    if (rank == 0 && starts && result == tuttiSuccess) result = tuttiRequestStart(request);
    if (result == tuttiSuccess) result = tuttiBarrier(comm, nullptr);
    if (result == tuttiSuccess) result = call.make(nullptr);
    if (result == tuttiSuccess) result = tuttiBarrier(comm, nullptr);
    EXPECT_EQ(result, tuttiInvalidUsage) << call.name;
    expectText("the ranks differ in whether");
    expectText("is persistent: rank 0 (");
    if (request != nullptr) CHECK_TUTTI(tuttiRequestFree(request));
  });
}

TEST_P(Persistent, OnOneRankAloneIsNamed) {
  EveryCallBuffers at(0, 2);
  const size_t calls = everyCollective(at, nullptr, nullptr).size();
  for (size_t which = 0; which < calls; ++which)
    for (const bool starts : {false, true}) expectNamedPersistent(which, starts, GetParam());
}

TEST_P(Persistent, AMessageOnOneSideAloneIsNamed) {
  for (const int persistent : {0, 1})
    for (const bool starts : {false, true})
      withCommunicators(2, over(GetParam()), [&](tuttiComm_t comm, int rank) {
        std::vector<int> value(500'000, rank);  // more than its slots hold
        tuttiRequest_t request = nullptr;
        const tuttiCallConfig_t config = callConfig(&request, rank == persistent ? TUTTI_CALL_PERSISTENT : 0);
        const auto move = [&](const tuttiCallConfig_t* how) {
          return rank == 0 ? tuttiSendConfig(value.data(), value.size(), tuttiInt32, 1, comm, nullptr, how)
                           : tuttiRecvConfig(value.data(), value.size(), tuttiInt32, 0, comm, nullptr, how);
        };
        tuttiResult_t result = move(&config);
        if (result == tuttiSuccess && rank == persistent && starts) result = tuttiRequestStart(request);
        if (result == tuttiSuccess) result = tuttiBarrier(comm, nullptr);
        if (result == tuttiSuccess) result = move(nullptr);
        if (result == tuttiSuccess) result = tuttiBarrier(comm, nullptr);
        EXPECT_EQ(result, tuttiInvalidUsage);
        expectText("the ranks differ in whether");
        expectText("is persistent: rank " + std::to_string(persistent));
        if (request != nullptr) CHECK_TUTTI(tuttiRequestFree(request));
      });
}

TEST(PersistentCall, OneThatStillRunsIsNotStarted) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    OwnStream on;
    int value = rank;
    tuttiRequest_t request = nullptr;
    const tuttiCallConfig_t config = callConfig(&request, TUTTI_CALL_PERSISTENT);
    CHECK_TUTTI(tuttiAllReduceConfig(&value, &value, 1, tuttiInt32, tuttiMax, comm, on.stream, &config));
    CHECK_TUTTI(tuttiRequestWait(request));
    if (rank == 0) {
      CHECK_TUTTI(tuttiRequestStart(request));  // the other waits for a message first
      EXPECT_EQ(tuttiRequestStart(request), tuttiInvalidUsage);
      expectText("still runs");
      EXPECT_EQ(tuttiRequestTest(request), tuttiInProgress);
      CHECK_TUTTI(tuttiSend(&rank, 1, tuttiInt32, 1, comm, nullptr));
    } else {
      int ignored = 0;
      CHECK_TUTTI(tuttiRecv(&ignored, 1, tuttiInt32, 0, comm, nullptr));
      CHECK_TUTTI(tuttiRequestStart(request));
    }
    CHECK_TUTTI(tuttiRequestWait(request));
    EXPECT_EQ(value, 1);
    CHECK_TUTTI(tuttiGroupStart());
    CHECK_TUTTI(tuttiRequestStart(request));
    CHECK_TUTTI(tuttiGroupEnd());
    CHECK_TUTTI(tuttiRequestWait(request));
    CHECK_TUTTI(tuttiRequestFree(request));
  });
}

TEST(PersistentCall, ADestroyedStreamServesItsStarts) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    int value = rank + 1, result = 0;
    tuttiRequest_t request = nullptr;
    tuttiStream_t stream = nullptr;
    CHECK_TUTTI(tuttiStreamCreate(&stream, 0));
    const tuttiCallConfig_t config = callConfig(&request, TUTTI_CALL_PERSISTENT);
    CHECK_TUTTI(tuttiAllReduceConfig(&value, &result, 1, tuttiInt32, tuttiSum, comm, stream, &config));
    CHECK_TUTTI(tuttiStreamDestroy(stream));
    for (int i = 0; i < 3; ++i) {
      CHECK_TUTTI(tuttiRequestStart(request));
      EXPECT_EQ(tuttiRequestWait(request), tuttiSuccess);
      EXPECT_EQ(std::exchange(result, 0), 3);
    }
    CHECK_TUTTI(tuttiRequestStart(request));
    CHECK_TUTTI(tuttiRequestFree(request));
    EXPECT_EQ(result, 3) << "it has ended with the stream";
  });
}

TEST(PersistentCall, MayBeStartedBeforeItIsReady) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    OwnStream on;
    int value = rank + 1, result = 0;
    tuttiRequest_t request = nullptr;
    const tuttiCallConfig_t config = callConfig(&request, TUTTI_CALL_PERSISTENT);
    CHECK_TUTTI(tuttiGroupStart());
    CHECK_TUTTI(tuttiAllReduceConfig(&value, &result, 1, tuttiInt32, tuttiSum, comm, nullptr, &config));
    CHECK_TUTTI(tuttiRequestStart(request));
    CHECK_TUTTI(tuttiGroupEnd());
    EXPECT_EQ(tuttiRequestTest(request), tuttiSuccess);
    EXPECT_EQ(std::exchange(result, 0), 3);
    CHECK_TUTTI(tuttiRequestFree(request));
    CHECK_TUTTI(tuttiAllReduceConfig(&value, &result, 1, tuttiInt32, tuttiSum, comm, on.stream, &config));
    CHECK_TUTTI(tuttiRequestStart(request));
    CHECK_TUTTI(tuttiRequestWait(request));
    EXPECT_EQ(result, 3);
    CHECK_TUTTI(tuttiRequestFree(request));
  });
}

TEST(PersistentCall, FailsAfterAFailureAndAfterTheEnd) {
  tuttiRequest_t requests[2] = {};
  int values[2] = {};
  std::latch bothRan{2};  // who is done first must not revoke what the other is still in
  withCommunicators(2, testConfig(), [&](tuttiComm_t comm, int rank) {
    const tuttiCallConfig_t config = callConfig(&requests[rank], TUTTI_CALL_PERSISTENT);
    int& value = values[rank];
    CHECK_TUTTI(tuttiAllReduceConfig(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr, &config));
    CHECK_TUTTI(tuttiRequestStart(requests[rank]));
    bothRan.arrive_and_wait();
    if (rank == 0) CHECK_TUTTI(tuttiCommRevoke(comm, 0));
    EXPECT_EQ(tuttiRequestStart(requests[rank]), tuttiRemoteError);
    EXPECT_NE(std::string(tuttiGetLastError(comm)), "");
    EXPECT_EQ(tuttiRequestTest(requests[rank]), tuttiRemoteError) << "it tells how the last start ended";
  });
  for (const tuttiRequest_t request : requests) {
    EXPECT_EQ(tuttiRequestStart(request), tuttiInvalidArgument);
    expectText("was destroyed");
    EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
  }
}

// What a group did not come to is told once: what another thread starts then is its own.
TEST(PersistentCall, AGroupThatIsRefusedEndsNoOtherStart) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    OwnStream on;
    int value = 1;
    tuttiRequest_t request = nullptr;
    const tuttiCallConfig_t config = callConfig(&request, TUTTI_CALL_PERSISTENT);
    CHECK_TUTTI(tuttiAllReduceConfig(&value, &value, 1, tuttiInt32, tuttiSum, comm, on.stream, &config));
    CHECK_TUTTI(tuttiRequestWait(request));
    std::atomic<bool> over{false};
    int started = 0;
    std::thread other([&] {
      while (!over) {
        CHECK_TUTTI(tuttiGroupStart());
        const bool collected = tuttiRequestStart(request) == tuttiSuccess;
        started += collected;
        for (int i = 0; collected && i < 20; ++i) EXPECT_EQ(tuttiRequestTest(request), tuttiInProgress);
        tuttiGroupEnd();
      }
    });
    for (int i = 0; i < 20'000; ++i) {
      CHECK_TUTTI(tuttiGroupStart());
      tuttiRequestStart(request);
      tuttiAllReduce(nullptr, &value, 1, tuttiInt32, tuttiSum, comm, nullptr);
      EXPECT_NE(tuttiGroupEnd(), tuttiSuccess);
    }
    over = true;
    other.join();
    EXPECT_GT(started, 0);
    CHECK_TUTTI(tuttiRequestFree(request));
  });
}

// The one that frees it does not wait, the one that runs it sees to the rest.
TEST(PersistentCall, MayBeFreedByAnotherThreadWhileItRuns) {
  std::atomic<bool> freed{false};
  withCommunicators(2, testConfig(), [&](tuttiComm_t comm, int rank) {
    std::vector<int> data(300'000, rank);
    tuttiRequest_t request = nullptr;
    const tuttiCallConfig_t config = callConfig(&request, TUTTI_CALL_PERSISTENT);
    CHECK_TUTTI(
        tuttiAllReduceConfig(data.data(), data.data(), data.size(), tuttiInt32, tuttiMax, comm, nullptr, &config));
    std::thread other([&] {
      while (rank == 0 && tuttiRequestTest(request) == tuttiSuccess) std::this_thread::yield();
      if (rank == 0) {
        EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
        freed = true;
      }
    });
    while (rank == 1 && !freed) std::this_thread::yield();
    CHECK_TUTTI(tuttiRequestStart(request));
    other.join();
    EXPECT_EQ(data, std::vector<int>(300'000, 1));
    EXPECT_EQ(tuttiRequestFree(request), rank == 0 ? tuttiInvalidArgument : tuttiSuccess);
  });
}

}  // namespace
