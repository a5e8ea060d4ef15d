// What goes wrong between ranks ends with an error that says who was where: never with a hang.
#include <atomic>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "support/api_ranks.h"
#include "support/texts.h"

namespace tutti::test {
namespace {

// What a rank finds missing before it calls anybody is told to those who would wait for it.
TEST(Trouble, AGpuThatOneRankLacksIsToldToAll) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  runRanks(2, [&](int rank) {
    tuttiConfig_t config = testConfig();
    config.device = rank == 1 ? "cuda:4000" : nullptr;
    tuttiComm_t comm = nullptr;
    const tuttiResult_t result = tuttiCommInitRankConfig(&comm, 2, id, rank, &config);
    const std::string text = lastText(nullptr);
    if (rank == 0) {
      EXPECT_EQ(result, tuttiRemoteError) << text;
      expectText(text, {"rank 1 could not join: "});
    } else {
      EXPECT_TRUE(result != tuttiSuccess && result != tuttiTimeout && result != tuttiRemoteError) << text;
    }
  });
}

// Each believes the other to be the root: both wait, nobody sends.
TEST(Trouble, TwoThatWaitForEachOtherFindTheirCallsDifferent) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    float value = 0;
    EXPECT_EQ(tuttiBroadcast(&value, &value, 1, tuttiFloat32, 1 - rank, comm, nullptr), tuttiInvalidUsage);
    expectText(lastText(comm), {"do not match", "rank 0 (", "rank 1 (", "broadcast #0 (float, 1 element, root 1)",
                                "broadcast #0 (float, 1 element, root 0)"});
  });
}

// Each believes itself to be the root: both have sent and are gone before anyone looks.
TEST(Trouble, WhatNobodyWaitedForIsFoundAtTheNextCall) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    float value = 0;
    CHECK_TUTTI(tuttiBroadcast(&value, &value, 1, tuttiFloat32, rank, comm, nullptr));
    EXPECT_EQ(tuttiBarrier(comm, nullptr), tuttiInvalidUsage);
    expectText(lastText(comm),
               {"do not match", "broadcast #0 (float, 1 element, root 1)", "broadcast #0 (float, 1 element, root 0)"});
  });
}

// Rank 1 waits for a message that rank 0 has called for long ago, on a stream that is still busy with something else.
// Of the hundreds of calls since, the record keeps only the last; that the first was made is known all the same.
TEST(Trouble, AnEarlyCallThatIsSlowIsNoMismatchAfterManyOthers) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    tuttiComm_t other = nullptr;
    CHECK_TUTTI(tuttiCommSplit(comm, 0, rank, &other, nullptr));
    int early = rank, late = rank;
    if (rank == 1) {
      std::thread holdsItUp([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(700));
        EXPECT_EQ(tuttiBarrier(other, nullptr), tuttiSuccess);
      });
      EXPECT_EQ(tuttiRecv(&early, 1, tuttiInt32, 0, comm, nullptr), tuttiSuccess) << lastText(comm);
      EXPECT_EQ(tuttiSend(&late, 1, tuttiInt32, 0, comm, nullptr), tuttiSuccess);
      holdsItUp.join();
    } else {
      tuttiStream_t stream = nullptr;
      CHECK_TUTTI(tuttiStreamCreate(&stream, 0));
      CHECK_TUTTI(tuttiBarrier(other, stream));
      CHECK_TUTTI(tuttiSend(&early, 1, tuttiInt32, 1, comm, stream));
      for (int i = 0; i < 300; ++i) {
        int from = i, to = -1;
        CHECK_TUTTI(tuttiGroupStart());
        CHECK_TUTTI(tuttiSend(&from, 1, tuttiInt32, 0, comm, nullptr));
        CHECK_TUTTI(tuttiRecv(&to, 1, tuttiInt32, 0, comm, nullptr));
        CHECK_TUTTI(tuttiGroupEnd());
      }
      EXPECT_EQ(tuttiRecv(&late, 1, tuttiInt32, 1, comm, nullptr), tuttiSuccess) << lastText(comm);
      EXPECT_EQ(tuttiStreamSynchronize(stream), tuttiSuccess);
      EXPECT_EQ(tuttiStreamDestroy(stream), tuttiSuccess);
    }
    EXPECT_EQ(rank == 0 ? late : early, 1 - rank);
    CHECK_TUTTI(tuttiCommDestroy(other));
  });
}

// Two ranks use two communicators in different orders: each waits on one for what the other would call next.
struct Crossing {
  tuttiResult_t result = tuttiSuccess;
  std::string text;
};
Crossing cross(tuttiComm_t comm, int rank) {
  tuttiComm_t other = nullptr;
  CHECK_TUTTI(tuttiCommSplit(comm, 0, rank, &other, nullptr));
  int value = 1;
  const tuttiComm_t first = rank == 0 ? comm : other;
  Crossing told;
  told.result = rank == 0 ? tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr)
                          : tuttiBroadcast(&value, &value, 1, tuttiInt32, 0, other, nullptr);
  told.text = lastText(first);
  tuttiCommDestroy(other);
  return told;
}

// Other threads of the process might still make the calls, so nothing ends before its time; but it is said.
TEST(Trouble, CommunicatorsInDifferentOrdersAreNamedAtTheDeadline) {
  tuttiConfig_t config = testConfig();
  config.operationTimeoutMs = 2'000;
  std::atomic<int> late{0};
  withCommunicators(2, config, [&](tuttiComm_t comm, int rank) {
    const Crossing told = cross(comm, rank);
    EXPECT_NE(told.result, tuttiSuccess);
    if (told.result == tuttiTimeout) {
      ++late;
      expectText(told.text, {"rank 0 (", "rank 1 (", "all-reduce #0 (int32, 1 element, sum) on communicator",
                             "broadcast #0 (int32, 1 element, root 0) on communicator", "in the same order"});
    }
  });
  EXPECT_GE(late, 1);
}

// Neither caller can make the call that the other waits for.
TEST(Trouble, ACollectiveAgainstAMessageIsNoHang) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    int value = 1;
    const auto result = rank == 0 ? tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr)
                                  : tuttiRecv(&value, 1, tuttiInt32, 0, comm, nullptr);
    EXPECT_EQ(result, tuttiInvalidUsage);
    expectText(lastText(comm),
               {"do not match", "all-reduce #0 (int32, 1 element, sum)", "receive from rank 0 #0 (int32, 1 element)"});
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
    CHECK_TUTTI(tuttiStreamCreate(&stream, 0));
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

// What has nothing in it says so all the same.
TEST(Trouble, AMessageOfNothingMeetsOneOfNothingOnly) {
  for (const int sends : {0, 64, 40'000})
    for (const int receives : {0, 64, 40'000}) {
      withCommunicators(2, testConfig(), [&](tuttiComm_t comm, int rank) {
        std::vector<float> values(40'000, 1.0f);
        const auto count = static_cast<size_t>(rank == 0 ? sends : receives);
        auto result = rank == 0 ? tuttiSend(values.data(), count, tuttiFloat32, 1, comm, nullptr)
                                : tuttiRecv(values.data(), count, tuttiFloat32, 0, comm, nullptr);
        if (sends == receives) {
          EXPECT_EQ(result, tuttiSuccess) << lastText(comm);
          return;
        }
        // A sender whose message has gone into its slots may have ended by then.
        if (rank == 0 && result == tuttiSuccess) result = tuttiBarrier(comm, nullptr);
        EXPECT_EQ(result, tuttiInvalidUsage) << "rank " << rank << ", " << sends << " against " << receives;
        expectText(lastText(comm), {"do not match", "send to rank 1 #0", "receive from rank 0 #0"});
      });
    }
}

// The root of a broadcast of something, among ranks who expect nothing, and the other way round.
TEST(Trouble, ACollectiveOfNothingMeetsOneOfNothingOnly) {
  for (const int mine : {0, 64}) {
    withCommunicators(3, testConfig(), [&](tuttiComm_t comm, int rank) {
      float values[64] = {};
      const auto count = static_cast<size_t>(rank == 0 ? mine : 64 - mine);
      auto result = tuttiBroadcast(values, values, count, tuttiFloat32, 0, comm, nullptr);
      if (result == tuttiSuccess) {
        EXPECT_EQ(rank, 0) << "only the root has nothing to find out from";
        result = tuttiBarrier(comm, nullptr);
      }
      EXPECT_EQ(result, tuttiInvalidUsage);
      expectText(lastText(comm),
                 {"do not match", "broadcast #0 (float, 0 elements", "broadcast #0 (float, 64 elements"});
    });
  }
}

tuttiResult_t gather(const std::vector<size_t>& counts, std::vector<float>& values, tuttiComm_t comm) {
  std::vector<size_t> places(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), places.begin(), size_t{0});
  static const std::vector<float> send(64, 1.0f);
  return tuttiAllGatherV(send.data(), values.data(), counts.data(), places.data(), tuttiFloat32, comm, nullptr);
}

// Parts that differ by rank: all of nothing against something, and the same sum in other parts. Where both send what
// the other does not expect, and expect nothing themselves, it is found at the next call.
TEST(Trouble, PartsOfRanksMustBeTheSameOnAll) {
  struct Case {
    std::vector<size_t> first, second;
  };
  for (const Case& one : std::vector<Case>{
           {{0, 0}, {64, 64}}, {{0, 0}, {64, 0}}, {{0, 64}, {64, 0}}, {{64, 0}, {0, 64}}, {{64, 64}, {0, 64}}}) {
    withCommunicators(2, testConfig(), [&](tuttiComm_t comm, int rank) {
      std::vector<float> values(128);
      auto result = gather(rank == 0 ? one.first : one.second, values, comm);
      if (result == tuttiSuccess) result = tuttiBarrier(comm, nullptr);
      EXPECT_EQ(result, tuttiInvalidUsage) << "rank " << rank;
      expectText(lastText(comm), {"do not match", "rank 0 (", "rank 1 (", "all-gather-v #0 (float, "});
    });
  }
}

// What becomes of a communicator whose last call returned so: another rank's failure comes by itself.
tuttiResult_t failureOf(tuttiComm_t comm, tuttiResult_t last) {
  for (int i = 0; i < 4000 && last == tuttiSuccess; ++i) {  // 20 s
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK_TUTTI(tuttiCommGetAsyncError(comm, &last));
  }
  return last;
}

// Where a rank knows the counts of its own parts only. Of the last two rank 1 and rank 0 is the root.
enum class Private { kAllToAllV, kGatherV, kScatterV };
constexpr Private kPrivate[] = {Private::kAllToAllV, Private::kGatherV, Private::kScatterV};
std::string mismatchIn(Private how) {
  constexpr const char* kNames[] = {"all-to-all-v", "gather-v", "scatter-v"};
  return std::string("counts do not match in ") + kNames[static_cast<int>(how)] + " #1";
}

// What each sends the other and expects of it: of nobody else, so everything else is nothing. With a root only rank 0
// sends and only rank 1 expects.
tuttiResult_t exchange(Private how, size_t sends, size_t expects, tuttiComm_t comm, int rank) {
  std::vector<float> from(40'000, 1.0f), to(40'000);
  size_t sent[2] = {}, received[2] = {};
  const size_t places[2] = {};
  sent[1 - rank] = sends;
  received[1 - rank] = expects;
  if (how == Private::kGatherV)
    return tuttiGatherV(from.data(), rank == 0 ? sends : 0, to.data(), rank == 1 ? received : nullptr, places,
                        tuttiFloat32, 1, comm, nullptr);
  if (how == Private::kScatterV)
    return tuttiScatterV(from.data(), rank == 0 ? sent : nullptr, places, to.data(), rank == 1 ? expects : 0,
                         tuttiFloat32, 0, comm, nullptr);
  return tuttiAllToAllV(from.data(), sent, places, to.data(), received, places, tuttiFloat32, comm, nullptr);
}

// Rank 1 waits for what rank 0 does not send, or what it sends is for nobody to take. (The call before has made the
// links.)
TEST(Trouble, WhatOneOfAPairSendsTheOtherMustExpect) {
  struct Case {
    Private how;
    size_t sends, expects;
  };
  std::vector<Case> cases;
  for (const Private how : kPrivate)
    for (const size_t count : {64, 40'000}) cases.insert(cases.end(), {{how, 0, count}, {how, count, 0}});
  for (const Case& one : cases) {
    std::atomic<bool> sent{false};
    withCommunicators(2, testConfig(), [&](tuttiComm_t comm, int rank) {
      CHECK_TUTTI(exchange(one.how, 1, 1, comm, rank));
      auto result = tuttiSuccess;
      if (rank == 0) {
        result = exchange(one.how, one.sends, 0, comm, rank);
        sent = true;
      } else {
        // A short message is there when the call ends that does not expect it.
        while (one.sends == 64 && !sent) std::this_thread::yield();
        result = exchange(one.how, 0, one.expects, comm, rank);
        EXPECT_NE(one.sends == 64 ? result : tuttiInvalidUsage, tuttiSuccess);
      }
      // Who only sent may have ended, and is told; a long message may come when its receiver no longer looks.
      if (rank == 1 && result == tuttiSuccess) result = tuttiBarrier(comm, nullptr);
      EXPECT_EQ(failureOf(comm, result), tuttiInvalidUsage)
          << "rank " << rank << ", " << one.sends << " against " << one.expects;
      expectText(lastText(comm), {mismatchIn(one.how), "rank 0 (", "rank 1 ("});
    });
  }
}

// The message comes when nobody looks any more: at the next call it is in the way.
TEST(Trouble, WhatCameTooLateIsFoundAtTheNextCall) {
  for (const Private how : kPrivate) {
    std::atomic<bool> over{false}, sent{false};
    withCommunicators(2, testConfig(), [&](tuttiComm_t comm, int rank) {
      CHECK_TUTTI(exchange(how, 1, 1, comm, rank));
      while (rank == 0 && !over) std::this_thread::yield();
      CHECK_TUTTI(exchange(how, rank == 0 ? 64 : 0, 0, comm, rank));
      (rank == 0 ? sent : over) = true;
      while (!sent) std::this_thread::yield();
      const auto result = exchange(how, 0, 0, comm, rank);
      EXPECT_EQ(failureOf(comm, result), tuttiInvalidUsage) << "rank " << rank;
      expectText(lastText(comm), {mismatchIn(how), "rank 0 (", "rank 1 (", "256 bytes more"});
    });
  }
}

TEST(Trouble, ASplitAgainstACallIsNoHang) {
  for (const bool collective : {true, false}) {
    withCommunicators(2, testConfig(), [&](tuttiComm_t comm, int rank) {
      int value = 1;
      tuttiComm_t child = nullptr;
      const auto call = [&] {
        return collective ? tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr)
                          : tuttiRecv(&value, 1, tuttiInt32, 1, comm, nullptr);
      };
      EXPECT_EQ(rank == 0 ? call() : tuttiCommSplit(comm, 0, 0, &child, nullptr), tuttiInvalidUsage);
      expectText(lastText(comm), {"do not match", "rank 0 (", collective ? "all-reduce #0" : "receive from rank 1 #0",
                                  "tuttiCommSplit"});
    });
  }
}

TEST(Trouble, ADuplicateThatOneRankCannotBeginSaysWhatItWas) {
  tuttiConfig_t wrong = testConfig();
  wrong.transports = "smoke";
  withCommunicators(2, testConfig(), [&](tuttiComm_t comm, int rank) {
    tuttiComm_t child = nullptr;
    EXPECT_EQ(tuttiCommDuplicate(comm, &child, rank == 1 ? &wrong : nullptr),
              rank == 1 ? tuttiInvalidArgument : tuttiRemoteError);
    if (rank == 0) expectText(lastText(comm), {"rank 1 (", ") gave up: tuttiCommDuplicate: ", ", during duplicate"});
  });
}

// Whatever it is that keeps one rank from its part of a split: nobody waits for it.
TEST(Trouble, ASplitThatOneRankCannotBeginFailsOnAll) {
  tuttiConfig_t wrong = testConfig();
  wrong.transports = "smoke";
  const auto expectTold = [](const char* why, const auto& call) {
    withCommunicators(3, testConfig(), [&](tuttiComm_t comm, int rank) {
      tuttiComm_t child = nullptr;
      const tuttiResult_t result = rank == 2 ? call(comm, &child) : tuttiCommSplit(comm, 0, 0, &child, nullptr);
      EXPECT_EQ(result, rank == 2 ? tuttiInvalidArgument : tuttiRemoteError);
      expectText(lastText(comm), {why});
      if (rank != 2) expectText(lastText(comm), {"rank 2 (", ") gave up: tuttiCommSplit: ", ", during split"});
      EXPECT_EQ(child, nullptr);
    });
  };
  expectTold("config.transports: ", [&](auto comm, auto child) { return tuttiCommSplit(comm, 0, 0, child, &wrong); });
  expectTold("color is -7", [](auto comm, auto child) { return tuttiCommSplit(comm, -7, 0, child, nullptr); });
  expectTold("child is NULL", [](auto comm, auto) { return tuttiCommSplit(comm, 0, 0, nullptr, nullptr); });
}

// One that waits on a stream, whose caller goes to the split, is no reason to end anything.
TEST(Trouble, ASplitMayComeWhileAMessageOnAStreamWaits) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    int value = 1, received = 0;
    tuttiStream_t stream = nullptr;
    CHECK_TUTTI(tuttiStreamCreate(&stream, 0));
    if (rank == 0) CHECK_TUTTI(tuttiRecv(&received, 1, tuttiInt32, 1, comm, stream));
    if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    tuttiComm_t child = nullptr;
    CHECK_TUTTI(tuttiCommSplit(comm, 0, rank, &child, nullptr));
    if (rank == 1) CHECK_TUTTI(tuttiSend(&value, 1, tuttiInt32, 0, comm, nullptr));
    CHECK_TUTTI(tuttiStreamDestroy(stream));
    EXPECT_EQ(received, rank == 0 ? 1 : 0);
    CHECK_TUTTI(tuttiCommDestroy(child));
  });
}

TEST(Trouble, AMessageToOneselfNeedsAGroup) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    int value = 7, received = 0;
    EXPECT_EQ(tuttiSend(&value, 1, tuttiInt32, rank, comm, nullptr), tuttiInvalidUsage);
    expectText(lastText(comm), {"tuttiSend", "itself", "tuttiGroupStart"});
    EXPECT_EQ(tuttiRecv(&received, 1, tuttiInt32, rank, comm, nullptr), tuttiInvalidUsage);
    CHECK_TUTTI(tuttiGroupStart());
    CHECK_TUTTI(tuttiSend(&value, 1, tuttiInt32, rank, comm, nullptr));
    EXPECT_EQ(tuttiGroupEnd(), tuttiInvalidUsage);
    expectText(lastText(comm), {"sends itself 1 message more than it receives"});
    CHECK_TUTTI(tuttiGroupStart());
    CHECK_TUTTI(tuttiRecv(&received, 1, tuttiInt32, rank, comm, nullptr));
    CHECK_TUTTI(tuttiSend(&value, 1, tuttiInt32, rank, comm, nullptr));
    CHECK_TUTTI(tuttiGroupEnd());
    EXPECT_EQ(received, 7);
    CHECK_TUTTI(tuttiBarrier(comm, nullptr));
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

// Over TCP the end of its connections is the first that is seen of it.
TEST(Trouble, ARankThatLeavesEarlyIsNoCutOverANetwork) {
  tuttiConfig_t config = testConfig();
  config.transports = "tcp";
  withCommunicators(3, config, [](tuttiComm_t comm, int rank) {
    CHECK_TUTTI(tuttiBarrier(comm, nullptr));
    if (rank == 2) return;
    EXPECT_EQ(tuttiBarrier(comm, nullptr), tuttiRemoteError);
    expectText(lastText(comm), {"rank 2 (", ") has left", "barrier #1", "still waits for it: it "});
  });
}

TEST(Trouble, ADeadlineSaysWhoHadComeAndWhoHadNot) {
  tuttiConfig_t config = testConfig();
  config.operationTimeoutMs = 400;
  std::atomic<int> ended{0};
  withCommunicators(4, config, [&](tuttiComm_t comm, int rank) {
    int value = rank;
    CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr));
    if (rank != 3) {
      EXPECT_EQ(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr), tuttiTimeout);
      expectText(lastText(comm), {"all-reduce #1", "400 ms", "3 of 4 ranks have come", "rank 3 (",
                                  "has not come to it (its last call: all-reduce #0"});
      ++ended;
    }
    while (ended != 3) std::this_thread::yield();  // who leaves passes nothing on of what others ask
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
  std::atomic<int> through{0};
  withCommunicators(3, testConfig(), [&](tuttiComm_t comm, int rank) {
    int value = 1;
    CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr));
    ++through;
    while (rank == 1 && through < 3) std::this_thread::yield();  // it would stop them in that call, too
    if (rank == 1) CHECK_TUTTI(tuttiCommRevoke(comm, 0));
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
    if (rank == 2) CHECK_TUTTI(tuttiCommRevoke(comm, 0));
    EXPECT_EQ(tuttiBarrier(comm, nullptr), tuttiRemoteError);
    tuttiComm_t next = nullptr;
    EXPECT_EQ(tuttiCommShrink(comm, nullptr, 0, &next, nullptr, 0), tuttiSuccess) << lastText(comm);
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
    EXPECT_EQ(tuttiCommShrink(comm, nullptr, 0, &next, nullptr, 0), tuttiSuccess) << lastText(comm);
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
  config.joinTimeoutMs = 1000;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 2, id, 1, &config), tuttiInProgress);
  EXPECT_EQ(awaitJoin(comm), tuttiTimeout);
  expectText(lastText(comm), {"missing: rank 0"});
  int rank = -1;
  EXPECT_EQ(tuttiCommUserRank(comm, &rank), tuttiInvalidArgument);
  CHECK_TUTTI(tuttiCommDestroy(comm));
}

}  // namespace
}  // namespace tutti::test
