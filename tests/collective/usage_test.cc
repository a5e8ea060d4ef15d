// Wrong use: each gets a result code and a text that says which argument of which call.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <thread>
#include <vector>

#include "support/api_ranks.h"

namespace {

using namespace tutti::test;

void expectText(tuttiComm_t comm, const std::string& part) {
  EXPECT_NE(std::string(tuttiGetLastError(comm)).find(part), std::string::npos) << tuttiGetLastError(comm);
}

TEST(Usage, WrongArgumentsAreNamed) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    float data[16] = {};
    const auto reduce = [&](const void* send, void* recv, size_t count, int type, int op) {
      return tuttiAllReduce(send, recv, count, static_cast<tuttiDataType_t>(type), static_cast<tuttiRedOp_t>(op), comm,
                            nullptr);
    };
    EXPECT_EQ(reduce(nullptr, data, 4, tuttiFloat32, tuttiSum), tuttiInvalidArgument);
    expectText(comm, "tuttiAllReduce: send is NULL");
    EXPECT_EQ(reduce(data, nullptr, 4, tuttiFloat32, tuttiSum), tuttiInvalidArgument);
    expectText(comm, "recv is NULL");
    EXPECT_EQ(reduce(data, data, 4, 12, tuttiSum), tuttiInvalidArgument);
    expectText(comm, "type is 12");
    EXPECT_EQ(reduce(data, data, 4, 63, tuttiSum), tuttiInvalidArgument);
    expectText(comm, "type is 63");
    EXPECT_EQ(reduce(data, data, 4, 67, tuttiSum), tuttiInvalidArgument);
    expectText(comm, "type is 67");
    EXPECT_EQ(reduce(data, data, 4, tuttiFloat32, 5), tuttiInvalidArgument);
    expectText(comm, "op is 5");
    EXPECT_EQ(reduce(data, data + 1, 4, tuttiFloat32, tuttiSum), tuttiInvalidArgument);
    expectText(comm, "overlap");
    EXPECT_EQ(reduce(data, data, SIZE_MAX / 2, tuttiFloat32, tuttiSum), tuttiInvalidArgument);
    expectText(comm, "count");
    EXPECT_EQ(tuttiBroadcast(data, data, 4, tuttiFloat32, -1, comm, nullptr), tuttiInvalidArgument);
    expectText(comm, "tuttiBroadcast: root is -1");
    EXPECT_EQ(tuttiReduce(data, data, 4, tuttiFloat32, tuttiSum, 1, comm, nullptr), tuttiInvalidArgument);
    expectText(comm, "root is 1");
    EXPECT_EQ(tuttiSend(data, 4, tuttiFloat32, 3, comm, nullptr), tuttiInvalidArgument);
    expectText(comm, "peer is 3");
    EXPECT_EQ(tuttiAllToAll(data, data + 1, 4, tuttiFloat32, comm, nullptr), tuttiInvalidArgument);
    expectText(comm, "overlap");
    EXPECT_EQ(reduce(nullptr, nullptr, 0, tuttiFloat32, tuttiSum), tuttiSuccess);
    tuttiResult_t state = tuttiInternalError;
    CHECK_TUTTI(tuttiCommGetAsyncError(comm, &state));
    EXPECT_EQ(state, tuttiSuccess) << "a wrong argument leaves the communicator usable";
  });
}

// Numbers, memory of somebody else's, memory that nobody may read, and what lies inside of a communicator.
std::vector<tuttiComm_t> strangers(tuttiComm_t comm, void* unreadable) {
  static uint64_t bytes[64] = {};
  const auto number = [](uintptr_t value) { return reinterpret_cast<tuttiComm_t>(value); };
  return {number(1),
          number(2),
          number(0x1000),
          number(UINTPTR_MAX),
          number(reinterpret_cast<uintptr_t>(comm) + 8),
          reinterpret_cast<tuttiComm_t>(bytes),
          static_cast<tuttiComm_t>(unreadable)};
}

TEST(Usage, WhatIsNoCommunicatorIsNotRead) {
  void* const unreadable = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(unreadable, MAP_FAILED);
  withCommunicators(1, testConfig(), [&](tuttiComm_t comm, int) {
    for (const tuttiComm_t stranger : strangers(comm, unreadable)) {
      float data = 1;
      int number = 0;
      tuttiResult_t state = tuttiSuccess;
      tuttiComm_t child = nullptr;
      tuttiRedOp_t op = tuttiSum;
      const std::vector<tuttiResult_t> results = {
          tuttiAllReduce(&data, &data, 1, tuttiFloat32, tuttiSum, stranger, nullptr),
          tuttiCommUserRank(stranger, &number),
          tuttiCommGetAsyncError(stranger, &state),
          tuttiCommSplit(stranger, 0, 0, &child, nullptr),
          tuttiCommRevoke(stranger, 0),
          tuttiCommDump(stranger, "nowhere"),
          tuttiRedOpCreatePreMulSum(&op, &data, tuttiFloat32, tuttiScalarHostImmediate, stranger),
          tuttiCommAbort(stranger),
          tuttiCommDestroy(stranger)};
      for (const tuttiResult_t result : results) EXPECT_EQ(result, tuttiInvalidArgument);
      expectText(stranger, "tuttiCommDestroy: comm is not a communicator");
      EXPECT_EQ(tuttiAllReduce(&data, &data, 1, tuttiFloat32, tuttiSum, comm, nullptr), tuttiSuccess);
    }
  });
  ::munmap(unreadable, 4096);
}

TEST(Usage, WrongTablesOfCountsAreNamed) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    double data[16] = {};
    const size_t counts[] = {2, 2}, apart[] = {0, 2}, close[] = {0, 1}, huge[] = {SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1};
    const auto gather = [&](const size_t* numbers, const size_t* places) {
      return tuttiAllGatherV(data, data + 8, numbers, places, tuttiFloat64, comm, nullptr);
    };
    EXPECT_EQ(gather(nullptr, apart), tuttiInvalidArgument);
    expectText(comm, "tuttiAllGatherV: recvCounts is NULL");
    EXPECT_EQ(gather(counts, close), tuttiInvalidArgument);
    expectText(comm, "recvDispls: the parts of ranks 0 and 1 overlap");
    EXPECT_EQ(gather(huge, huge), tuttiInvalidArgument);
    expectText(comm, "recvCounts[0] is");
    EXPECT_EQ(tuttiReduceScatterV(data, data + 8, huge, tuttiFloat64, tuttiSum, comm, nullptr), tuttiInvalidArgument);
    expectText(comm, "tuttiReduceScatterV: recvCounts");
    const auto exchange = [&](const size_t* out, const size_t* in, const size_t* places) {
      return tuttiAllToAllV(data, out, apart, data + 8, in, places, tuttiFloat64, comm, nullptr);
    };
    EXPECT_EQ(exchange(counts, counts, close), tuttiInvalidArgument);
    expectText(comm, "tuttiAllToAllV: recvDispls");
    EXPECT_EQ(exchange(huge, huge, apart), tuttiInvalidArgument);
    expectText(comm, "tuttiAllToAllV: ");
    const size_t other[] = {rank == 0 ? 1u : 2u, rank == 0 ? 2u : 1u};
    EXPECT_EQ(exchange(other, counts, apart), tuttiInvalidArgument);
    expectText(comm, "sends itself 1 elements but expects 2");
    EXPECT_EQ(exchange(counts, counts, apart), tuttiSuccess);
  });
}

TEST(Usage, AnExchangeInPlaceHasEqualTables) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int) {
    double data[16] = {};
    const size_t counts[] = {2, 2}, more[] = {2, 3}, places[] = {0, 4}, other[] = {0, 6}, none[] = {0, 0};
    const auto exchange = [&](const size_t* in, const size_t* at) {
      return tuttiAllToAllV(data, counts, places, data, in, at, tuttiFloat64, comm, nullptr);
    };
    EXPECT_EQ(exchange(counts, other), tuttiInvalidArgument);
    expectText(comm, "goes to rank 1 (2 elements from 4 on) is not where what comes from it goes (2 elements from 6");
    EXPECT_EQ(tuttiAllToAllV(data, none, places, data, none, other, tuttiFloat64, comm, nullptr), tuttiSuccess);
    EXPECT_EQ(tuttiAllToAllV(data, more, places, data, more, other, tuttiFloat64, comm, nullptr), tuttiInvalidArgument);
    expectText(comm, "in place, the tables of both sides are equal");
    EXPECT_EQ(exchange(counts, places), tuttiSuccess);
  });
}

// Only the root has them, and only there are they looked at.
TEST(Usage, WrongTablesAtTheRootAreNamed) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    double data[16] = {};
    const size_t two[] = {2}, start[] = {0}, five[] = {5}, huge[] = {SIZE_MAX / 2 + 1}, many[] = {size_t{1} << 48};
    const auto gather = [&](const void* send, size_t count, const size_t* counts, const size_t* places) {
      return tuttiGatherV(send, count, data, counts, places, tuttiFloat64, 0, comm, nullptr);
    };
    const auto scatter = [&](void* recv, size_t count, const size_t* counts, const size_t* places) {
      return tuttiScatterV(data, counts, places, recv, count, tuttiFloat64, 0, comm, nullptr);
    };
    EXPECT_EQ(gather(data + 8, 2, nullptr, start), tuttiInvalidArgument);
    expectText(comm, "tuttiGatherV: recvCounts is NULL");
    EXPECT_EQ(gather(data + 8, 2, two, nullptr), tuttiInvalidArgument);
    expectText(comm, "tuttiGatherV: recvDispls is NULL");
    EXPECT_EQ(gather(data + 8, 3, two, start), tuttiInvalidArgument);
    expectText(comm, "sendCount and recvCounts: rank 0 sends itself 3 elements but expects 2");
    EXPECT_EQ(gather(data + 1, 2, two, start), tuttiInvalidArgument);
    expectText(comm, "overlap");
    EXPECT_EQ(gather(nullptr, 2, two, start), tuttiInvalidArgument);
    expectText(comm, "send is NULL");
    EXPECT_EQ(gather(data, huge[0], huge, huge), tuttiInvalidArgument);
    EXPECT_EQ(scatter(data + 8, 2, nullptr, start), tuttiInvalidArgument);
    expectText(comm, "tuttiScatterV: sendCounts is NULL");
    EXPECT_EQ(scatter(data + 8, 2, two, nullptr), tuttiInvalidArgument);
    expectText(comm, "tuttiScatterV: sendDispls is NULL");
    EXPECT_EQ(scatter(data + 8, 3, two, start), tuttiInvalidArgument);
    expectText(comm, "sendCounts and recvCount: rank 0 sends itself 2 elements but expects 3");
    EXPECT_EQ(scatter(data + 4, 2, two, five), tuttiInvalidArgument);
    expectText(comm, "overlap");
    EXPECT_EQ(scatter(data, 2, two, huge), tuttiInvalidArgument);
    EXPECT_EQ(tuttiScatterV(data, many, start, data, many[0], tuttiInt8, 0, comm, nullptr), tuttiInvalidArgument);
    expectText(comm, "more than a call can have");
    const size_t far[] = {size_t{1} << 49}, farthest[] = {SIZE_MAX / 16};
    EXPECT_EQ(gather(data + 8, 2, two, far), tuttiInvalidArgument);
    expectText(comm, "tuttiGatherV: recvDispls[0] is 562949953421312: with the 2 elements of recvCounts[0] from there");
    EXPECT_EQ(scatter(data + 8, 2, two, farthest), tuttiInvalidArgument);
    expectText(comm,
               "tuttiScatterV: sendCounts[0] is 2: that many elements from sendDispls[0] (1152921504606846975) on");
    EXPECT_EQ(gather(data + 5, 2, two, five), tuttiSuccess) << "in place";
    EXPECT_EQ(scatter(data + 5, 2, two, five), tuttiSuccess) << "in place";
    EXPECT_EQ(tuttiGatherV(data, 2, data, two, start, tuttiFloat64, 1, comm, nullptr), tuttiInvalidArgument);
    expectText(comm, "tuttiGatherV: root is 1");
  });
}

TEST(Usage, PartsThatOverlapAreNamedAtTheRootAndMayWhereTheyAreRead) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    double data[16] = {};
    const size_t counts[] = {2, 2}, apart[] = {0, 2}, close[] = {0, 1};
    if (rank == 0) {
      EXPECT_EQ(tuttiGatherV(data + 8, 2, data, counts, close, tuttiFloat64, 0, comm, nullptr), tuttiInvalidArgument);
      expectText(comm, "tuttiGatherV: recvDispls: the parts of ranks 0 and 1 overlap");
    }
    EXPECT_EQ(tuttiGatherV(data + 8, 2, data, rank == 0 ? counts : nullptr, apart, tuttiFloat64, 0, comm, nullptr),
              tuttiSuccess);
    EXPECT_EQ(tuttiScatterV(data, rank == 0 ? counts : nullptr, close, data + 8, 2, tuttiFloat64, 0, comm, nullptr),
              tuttiSuccess);
  });
}

// A slot would tell one more as none.
TEST(Usage, MoreElementsThanASlotCanTellAreRefused) {
  constexpr size_t kLess = size_t{1} << 47, kMore = 2 * kLess;
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    char data[16] = {};
    EXPECT_EQ(tuttiAllReduce(data, data, kMore, tuttiInt8, tuttiSum, comm, nullptr), tuttiInvalidArgument);
    expectText(comm, "tuttiAllReduce: count is 281474976710656: 1 times that many elements are more than a call can");
    EXPECT_EQ(tuttiAllGather(data, data, kLess, tuttiInt8, comm, nullptr), tuttiInvalidArgument);
    expectText(comm, "tuttiAllGather: count is 140737488355328: 2 times");
    EXPECT_EQ(tuttiSend(data, kMore, tuttiInt8, 1 - rank, comm, nullptr), tuttiInvalidArgument);
    expectText(comm, "which is 281474976710655");
    const size_t counts[] = {kLess, kLess};
    EXPECT_EQ(tuttiReduceScatterV(data, data, counts, tuttiInt8, tuttiSum, comm, nullptr), tuttiInvalidArgument);
    expectText(comm, "tuttiReduceScatterV: count is 281474976710656");
    CHECK_TUTTI(tuttiBarrier(comm, nullptr));
  });
}

TEST(Usage, WrongOperatorsAreNamed) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    float data = 1;
    for (const int number : {int{tuttiNumOps}, 63, int{tuttiBitXor} + 1, 1023, 1024, int{tuttiMaxRedOp}}) {
      const auto op = static_cast<tuttiRedOp_t>(number);
      EXPECT_EQ(tuttiAllReduce(&data, &data, 1, tuttiFloat32, op, comm, nullptr), tuttiInvalidArgument);
      expectText(comm, "tuttiAllReduce: op is ");
      EXPECT_EQ(tuttiRedOpDestroy(op, comm), tuttiInvalidArgument);
      expectText(comm, "tuttiRedOpDestroy: op is ");
    }
  });
}

// What is wrong with a list of transports is known before anybody else is waited for, and costs nobody the id.
TEST(Usage, WrongTransportsAreFoundBeforeJoining) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiConfig_t config = testConfig();
  config.transports = "smoke";
  tuttiComm_t comm = nullptr;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 2, id, 0, &config), tuttiInvalidArgument);
  expectText(nullptr, "tuttiCommInitRankConfig: config.transports: ");
  config.transports = nullptr;
  CHECK_TUTTI(tuttiCommInitRankConfig(&comm, 1, id, 0, &config));
  config.transports = "smoke";
  tuttiComm_t child = nullptr;
  EXPECT_EQ(tuttiCommSplit(comm, 0, 0, &child, &config), tuttiInvalidArgument);
  expectText(comm, "tuttiCommSplit: config.transports: ");
  CHECK_TUTTI(tuttiCommDestroy(comm));
}

TEST(Usage, TooManyRanksAreRefusedBeforeAnybodyIsWaitedFor) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiComm_t comm = nullptr;
  for (const int ranks : {0, INT_MAX}) {
    EXPECT_EQ(tuttiCommInitRank(&comm, ranks, id, 0), tuttiInvalidArgument);
    expectText(nullptr, "tuttiCommInitRank: ranks is " + std::to_string(ranks) + ": there can be 1 to 16384");
  }
  EXPECT_EQ(tuttiCommInitRank(&comm, 4, id, 4), tuttiInvalidArgument);
  expectText(nullptr, "rank is 4: ranks of this communicator are 0 to 3");
}

TEST(Usage, OneRankThatFailsStopsInitAll) {
  tuttiComm_t comms[3] = {};
  const int strange[] = {-1, -2, -1};
  EXPECT_EQ(tuttiCommInitAll(comms, 3, strange), tuttiInvalidArgument);
  expectText(nullptr, "tuttiCommInitAll: devices[1] is -2");
  const int absent[] = {-1, 4711, -1};  // the others would wait for rank 1 until their deadline, and blame it
  EXPECT_EQ(tuttiCommInitAll(comms, 3, absent), tuttiInvalidArgument);
  expectText(nullptr, "4711");
}

TEST(Usage, WrongConfigurationsAreNamed) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiComm_t comm = nullptr;
  tuttiConfig_t config = testConfig();
  config.transports = "smoke";
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 1, id, 0, &config), tuttiInvalidArgument);
  expectText(nullptr, "smoke");
  config = testConfig();
  config.algorithm = "rings";
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 1, id, 0, &config), tuttiInvalidArgument);
  expectText(nullptr, "tuttiCommInitRankConfig: config.algorithm: 'rings'");
  config = testConfig();
  config.size = 1;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 1, id, 0, &config), tuttiInvalidArgument);
  config = testConfig();
  config.version = 0;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 1, id, 0, &config), tuttiInvalidArgument);
  expectText(nullptr, "tuttiCommInitRankConfig: config.version is 0");
  config = testConfig();
  config.encrypt = -1;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 1, id, 0, &config), tuttiInvalidArgument);
  expectText(nullptr, "tuttiCommInitRankConfig: config.encrypt is -1");
  config = testConfig();
  config.nonBlocking = 2;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 1, id, 0, &config), tuttiInvalidArgument);
  expectText(nullptr, "tuttiCommInitRankConfig: config.nonBlocking is 2");
  EXPECT_EQ(tuttiCommInitRank(&comm, 2, id, 2), tuttiInvalidArgument);
  expectText(nullptr, "tuttiCommInitRank: rank is 2");
  EXPECT_EQ(tuttiCommInitRank(&comm, 0, id, 0), tuttiInvalidArgument);
  EXPECT_EQ(tuttiCommInitRank(nullptr, 1, id, 0), tuttiInvalidArgument);
  id.internal[20] ^= 1;
  EXPECT_EQ(tuttiCommInitRank(&comm, 1, id, 0), tuttiInvalidArgument);
}

TEST(Usage, ABufferBeyondAllMemoryIsNotRegistered) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    char data[16] = {};
    void* handle = nullptr;
    EXPECT_EQ(tuttiCommRegister(comm, data, SIZE_MAX, &handle, 0), tuttiInvalidArgument);
    expectText(comm, "tuttiCommRegister: bytes is 18446744073709551615: no memory is that large");
    void* const last = reinterpret_cast<void*>(UINTPTR_MAX - 9);
    EXPECT_EQ(tuttiCommRegister(comm, last, 10, &handle, 0), tuttiInvalidArgument);
    expectText(comm, "tuttiCommRegister: 10 bytes from buffer on go beyond the end of all memory");
    CHECK_TUTTI(tuttiCommRegister(comm, data, sizeof data, &handle, 0));
    CHECK_TUTTI(tuttiCommDeregister(comm, handle));
  });
}

TEST(Usage, ADestroyedCommunicatorSaysSo) {
  tuttiComm_t comm = nullptr;
  CHECK_TUTTI(tuttiCommInitAll(&comm, 1, nullptr));
  CHECK_TUTTI(tuttiCommDestroy(comm));
  EXPECT_EQ(tuttiBarrier(comm, nullptr), tuttiInvalidArgument);
  expectText(nullptr, "tuttiBarrier: comm (rank 0) was destroyed");
  EXPECT_EQ(tuttiCommDestroy(comm), tuttiInvalidArgument);
  EXPECT_EQ(tuttiCommDestroy(nullptr), tuttiSuccess);
  EXPECT_EQ(tuttiBarrier(nullptr, nullptr), tuttiInvalidArgument);
  // The calls that any thread may make at any time, too.
  EXPECT_EQ(tuttiCommAbort(comm), tuttiInvalidArgument);
  expectText(nullptr, "tuttiCommAbort: comm (rank 0) was destroyed");
  tuttiResult_t state = tuttiSuccess;
  EXPECT_EQ(tuttiCommGetAsyncError(comm, &state), tuttiInvalidArgument);
  expectText(nullptr, "tuttiCommGetAsyncError: comm (rank 0) was destroyed");
  EXPECT_EQ(tuttiCommRevoke(comm, 0), tuttiInvalidArgument);
  expectText(nullptr, "tuttiCommRevoke: comm (rank 0) was destroyed");
  EXPECT_EQ(tuttiCommDump(comm, "nowhere"), tuttiInvalidArgument);
  expectText(nullptr, "tuttiCommDump: comm (rank 0) was destroyed");
}

TEST(Usage, ASecondThreadIsTurnedAway) {
  std::atomic<bool> refused{false};
  withCommunicators(2, testConfig(), [&refused](tuttiComm_t comm, int rank) {
    if (rank == 1) {
      refused.wait(false);  // rank 0 waits in its barrier meanwhile
      CHECK_TUTTI(tuttiBarrier(comm, nullptr));
      return;
    }
    std::thread second([&] {
      // Until the first thread is inside, this one may get in itself: only a query, which changes nothing.
      int count = 0;
      while (tuttiCommCount(comm, &count) != tuttiInvalidUsage) std::this_thread::yield();
      refused = true;
      refused.notify_one();
    });
    tuttiResult_t result = tuttiInvalidUsage;
    while (result == tuttiInvalidUsage) result = tuttiBarrier(comm, nullptr);
    EXPECT_EQ(result, tuttiSuccess);
    second.join();
  });
}

// Calls that differ are found on the side that reads; the other side learns it at its next wait.
TEST(Usage, CallsThatDoNotMatchNameBoth) {
  std::atomic<int> named{0};
  withCommunicators(2, testConfig(), [&](tuttiComm_t comm, int rank) {
    std::vector<float> data(1000);
    const auto result =
        tuttiAllReduce(data.data(), data.data(), rank == 0 ? 1000 : 999, tuttiFloat32, tuttiSum, comm, nullptr);
    EXPECT_NE(result, tuttiSuccess);
    const std::string text = tuttiGetLastError(comm);
    if (text.find("1000 elements") != std::string::npos && text.find("999 elements") != std::string::npos) ++named;
    EXPECT_NE(tuttiBarrier(comm, nullptr), tuttiSuccess) << "the communicator stays stopped";
    tuttiResult_t state = tuttiSuccess;
    CHECK_TUTTI(tuttiCommGetAsyncError(comm, &state));
    EXPECT_NE(state, tuttiSuccess);
  });
  EXPECT_EQ(named, 2);
}

TEST(Usage, AnOperationHasADeadline) {
  tuttiConfig_t config = testConfig();
  config.operationTimeoutMs = 300;
  withCommunicators(2, config, [](tuttiComm_t comm, int rank) {
    if (rank == 1) return;
    EXPECT_EQ(tuttiBarrier(comm, nullptr), tuttiTimeout);
    expectText(comm, "barrier #0");
  });
}

TEST(Usage, AbortFromAnotherThreadEndsAWait) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    if (rank == 1) {
      EXPECT_NE(tuttiBarrier(comm, nullptr), tuttiSuccess) << "the abort of the other rank is known here too";
      expectText(comm, "tuttiCommAbort");
      return;
    }
    std::thread other([comm] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_EQ(tuttiCommAbort(comm), tuttiSuccess);
    });
    int never = 0;
    EXPECT_NE(tuttiRecv(&never, 1, tuttiInt32, 1, comm, nullptr), tuttiSuccess);
    other.join();
    EXPECT_EQ(tuttiBarrier(comm, nullptr), tuttiInvalidArgument);
  });
}

}  // namespace
