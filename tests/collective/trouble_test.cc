// What goes wrong between ranks ends with an error that says who was where: never with a hang.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "support/api_ranks.h"

namespace tutti::testing {
namespace {

std::string lastText(tuttiComm_t comm) { return tuttiGetLastError(comm); }

void expectText(const std::string& text, const std::vector<std::string>& parts) {
  for (const auto& part : parts) EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in: " << text;
}

// Each believes the other to be the root: both wait, nobody sends.
TEST(Trouble, TwoThatWaitForEachOtherFindTheirCallsDifferent) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    float value = 0;
    EXPECT_EQ(tuttiBroadcast(&value, &value, 1, tuttiFloat32, 1 - rank, comm, nullptr), tuttiInvalidUsage);
    expectText(lastText(comm), {"do not match", "rank 0 (", "rank 1 (", "broadcast #0 (float, 1 elements, root 1)",
                                "broadcast #0 (float, 1 elements, root 0)"});
  });
}

// Each believes itself to be the root: both have sent and are gone before anyone looks.
TEST(Trouble, WhatNobodyWaitedForIsFoundAtTheNextCall) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    float value = 0;
    CHECK_TUTTI(tuttiBroadcast(&value, &value, 1, tuttiFloat32, rank, comm, nullptr));
    EXPECT_EQ(tuttiBarrier(comm, nullptr), tuttiInvalidUsage);
    expectText(lastText(comm), {"do not match", "broadcast #0 (float, 1 elements, root 1)",
                                "broadcast #0 (float, 1 elements, root 0)"});
  });
}

// Neither caller can make the call that the other waits for.
TEST(Trouble, ACollectiveAgainstAMessageIsNoHang) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    int value = 1;
    const auto result = rank == 0 ? tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr)
                                  : tuttiRecv(&value, 1, tuttiInt32, 0, comm, nullptr);
    EXPECT_EQ(result, tuttiInvalidUsage);
    expectText(lastText(comm), {"do not match", "all-reduce #0 (int32, 1 elements, sum)",
                                "receive from rank 0 #0 (int32, 1 elements)"});
  });
}

TEST(Trouble, TwoThatBothReceiveAreNoHang) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    int value = 1;
    EXPECT_EQ(tuttiRecv(&value, 1, tuttiInt32, 1 - rank, comm, nullptr), tuttiInvalidUsage);
    expectText(lastText(comm), {"receive from rank 0 #0", "receive from rank 1 #0"});
  });
}

// The same two calls, but the message is on a stream: its caller goes on, and makes the collective.
TEST(Trouble, AMessageOnAStreamMayWaitForLater) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    int value = 1, received = 0;
    tuttiStream_t stream = nullptr;
    CHECK_TUTTI(tuttiStreamCreate(&stream));
    if (rank == 1) {
      CHECK_TUTTI(tuttiRecv(&received, 1, tuttiInt32, 0, comm, stream));
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr));
    if (rank == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      CHECK_TUTTI(tuttiSend(&value, 1, tuttiInt32, 1, comm, nullptr));
    }
    CHECK_TUTTI(tuttiStreamDestroy(stream));
    EXPECT_EQ(received, rank == 1 ? 2 : 0);
  });
}

TEST(Trouble, ARankThatLeavesEarlyIsNamed) {
  withCommunicators(3, testConfig(), [](tuttiComm_t comm, int rank) {
    CHECK_TUTTI(tuttiBarrier(comm, nullptr));
    if (rank == 2) return;
    EXPECT_EQ(tuttiBarrier(comm, nullptr), tuttiRemoteError);
    expectText(lastText(comm), {"rank 2 (", "has left", "barrier #1", "fewer calls"});
  });
}

TEST(Trouble, ADeadlineSaysWhoHadComeAndWhoHadNot) {
  tuttiConfig_t config = testConfig();
  config.operationTimeoutMs = 400;
  std::atomic<int> ended{0};
  withCommunicators(4, config, [&](tuttiComm_t comm, int rank) {
    int value = rank;
    CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr));
    if (rank == 3) {
      while (ended != 3) std::this_thread::yield();
      return;
    }
    EXPECT_EQ(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr), tuttiTimeout);
    expectText(lastText(comm), {"all-reduce #1", "400 ms", "3 of 4 ranks have come", "rank 3 (",
                                "has not come to it (its last call: all-reduce #0"});
    ++ended;
  });
}

TEST(Trouble, AWaitThatIsOnlyLongIsLeftAlone) {
  withCommunicators(3, testConfig(), [](tuttiComm_t comm, int rank) {
    int value = 1;
    for (int i = 0; i < 2; ++i) {
      if (rank == i) std::this_thread::sleep_for(std::chrono::milliseconds(700));
      CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr));
    }
    EXPECT_EQ(value, 9);
  });
}

TEST(Trouble, RevokeStopsEveryoneAndNamesTheCaller) {
  withCommunicators(3, testConfig(), [](tuttiComm_t comm, int rank) {
    int value = 1;
    CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr));
    if (rank == 1) CHECK_TUTTI(tuttiCommRevoke(comm));
    EXPECT_EQ(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr), tuttiRemoteError);
    expectText(lastText(comm), {"rank 1 (", "revoked the communicator"});
    int count = 0;
    CHECK_TUTTI(tuttiCommCount(comm, &count));
    EXPECT_EQ(count, 3);
  });
}

TEST(Trouble, RevokeAndShrinkGiveANewStart) {
  withCommunicators(4, testConfig(), [](tuttiComm_t comm, int rank) {
    int value = rank;
    if (rank == 2) CHECK_TUTTI(tuttiCommRevoke(comm));
    EXPECT_EQ(tuttiBarrier(comm, nullptr), tuttiRemoteError);
    tuttiComm_t next = nullptr;
    EXPECT_EQ(tuttiCommShrink(comm, &next, nullptr), tuttiSuccess) << lastText(comm);
    int newRank = -1;
    CHECK_TUTTI(tuttiCommUserRank(next, &newRank));
    EXPECT_EQ(newRank, rank);
    CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, next, nullptr));
    EXPECT_EQ(value, 6);
    CHECK_TUTTI(tuttiCommDestroy(next));
  });
}

// Rank 1 leaves, as one does whose program fails; the rest go on without it.
TEST(Trouble, TheOthersShrinkWhenOneHasLeft) {
  withCommunicators(4, testConfig(), [](tuttiComm_t comm, int rank) {
    int value = rank;
    CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr));
    if (rank == 1) return;
    EXPECT_EQ(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr), tuttiRemoteError);
    tuttiComm_t next = nullptr;
    EXPECT_EQ(tuttiCommShrink(comm, &next, nullptr), tuttiSuccess) << lastText(comm);
    int ranks = 0, newRank = -1;
    CHECK_TUTTI(tuttiCommCount(next, &ranks));
    CHECK_TUTTI(tuttiCommUserRank(next, &newRank));
    EXPECT_EQ(ranks, 3);
    EXPECT_EQ(newRank, rank == 0 ? 0 : rank - 1);
    value = 1;
    CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, next, nullptr));
    EXPECT_EQ(value, 3);
    CHECK_TUTTI(tuttiCommDestroy(next));
  });
}

tuttiResult_t awaitJoin(tuttiComm_t comm) {
  tuttiResult_t state = tuttiInProgress;
  while (state == tuttiInProgress) CHECK_TUTTI(tuttiCommGetAsyncError(comm, &state));
  return state;
}

TEST(Trouble, JoinsInTheBackground) {
  tuttiConfig_t config = testConfig();
  config.nonBlocking = 1;
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiComm_t comms[2] = {};
  EXPECT_EQ(tuttiCommInitRankConfig(&comms[0], 2, id, 0, &config), tuttiInProgress);
  int rank = -1;
  EXPECT_EQ(tuttiCommUserRank(comms[0], &rank), tuttiInvalidUsage);
  expectText(tuttiGetLastError(nullptr), {"still joining"});
  EXPECT_EQ(tuttiCommInitRankConfig(&comms[1], 2, id, 1, &config), tuttiInProgress);
  for (tuttiComm_t comm : comms) EXPECT_EQ(awaitJoin(comm), tuttiSuccess);
  runRanks(2, [&](int r) {
    int value = 1;
    CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comms[r], nullptr));
    EXPECT_EQ(value, 2);
    CHECK_TUTTI(tuttiCommDestroy(comms[r]));
  });
}

TEST(Trouble, AJoinCanBeAbortedAndAFailedOneSaysWhy) {
  tuttiConfig_t config = testConfig();
  config.nonBlocking = 1;
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiComm_t comm = nullptr;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 2, id, 0, &config), tuttiInProgress);
  CHECK_TUTTI(tuttiCommAbort(comm));
  EXPECT_EQ(tuttiCommAbort(comm), tuttiSuccess) << "once more does no harm";

  CHECK_TUTTI(tuttiGetUniqueId(&id));
  config.joinTimeoutMs = 100;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 2, id, 1, &config), tuttiInProgress);
  EXPECT_EQ(awaitJoin(comm), tuttiTimeout);
  expectText(lastText(comm), {"missing: rank 0"});
  int rank = -1;
  EXPECT_EQ(tuttiCommUserRank(comm, &rank), tuttiInvalidArgument);
  CHECK_TUTTI(tuttiCommDestroy(comm));
}

TEST(Trouble, ADumpTellsTheLastCalls) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    double values[6] = {};
    for (int i = 0; i < 300; ++i) CHECK_TUTTI(tuttiBarrier(comm, nullptr));
    CHECK_TUTTI(tuttiReduce(values, values, 6, tuttiFloat64, tuttiMax, 1, comm, nullptr));
    const std::string path = ::testing::TempDir() + "tutti-dump-test-" + std::to_string(rank) + ".json";
    CHECK_TUTTI(tuttiCommDump(comm, path.c_str()));
    std::ifstream file(path);
    const auto dump = nlohmann::json::parse(file);
    std::remove(path.c_str());
    EXPECT_EQ(dump["communicator"]["rank"], rank);
    EXPECT_EQ(dump["ranks"].size(), 2u);
    EXPECT_TRUE(dump["error"].is_null());
    const auto& calls = dump["calls"];
    ASSERT_EQ(calls.size(), 256u);
    EXPECT_EQ(calls.front()["order"], 45);
    const auto& last = calls.back();
    EXPECT_EQ(last["number"], 300);
    EXPECT_EQ(last["kind"], "reduce");
    EXPECT_EQ(last["type"], "double");
    EXPECT_EQ(last["bytes"], 48);
    EXPECT_EQ(last["op"], "max");
    EXPECT_EQ(last["root"], 1);
    EXPECT_EQ(last["state"], "done");
    EXPECT_LE(last["queuedNs"], last["endedNs"]);
    EXPECT_EQ(tuttiCommDump(comm, "/nowhere/at/all.json"), tuttiSystemError);
    CHECK_TUTTI(tuttiBarrier(comm, nullptr));
  });
}

// What a child of a data loader would meet.
TEST(Trouble, AForkedChildIsRefusedAndItsEndChangesNothing) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    int value = 1;
    CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr));
    if (rank == 0) {
      const pid_t child = ::fork();
      if (child == 0) {
        const bool refused = tuttiBarrier(comm, nullptr) == tuttiInvalidUsage &&
                             std::string(tuttiGetLastError(nullptr)).find("forked") != std::string::npos &&
                             tuttiCommDestroy(comm) == tuttiInvalidUsage;
        ::_exit(refused ? 0 : 1);
      }
      int status = -1;
      ::waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
    CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr));
    EXPECT_EQ(value, 4);
  });
}

// A child may have communicators of its own, also while its parent has some.
TEST(Trouble, AForkedChildMakesItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends a forked child that starts threads";
#endif
  withCommunicators(1, testConfig(), [](tuttiComm_t, int) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool right = true;
      withCommunicators(3, testConfig(), [&](tuttiComm_t own, int) {
        int value = 1;
        CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, own, nullptr));
        if (value != 3) right = false;
      });
      std::_Exit(right ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  });
}

}  // namespace
}  // namespace tutti::testing
