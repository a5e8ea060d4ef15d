// A deadline of one call: shorter and longer than the communicator's, of every kind of call.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "support/api_ranks.h"
#include "support/every_call.h"
#include "support/variables.h"

namespace {

using namespace tutti::test;

constexpr int kShort = 300;
const std::string kOwnTimeout =
    "did not finish within 300 ms, the timeout of this call (its config.timeoutMs) of rank 0,";

tuttiCallConfig_t timedCall(int milliseconds) {
  tuttiCallConfig_t config = callConfig();
  config.timeoutMs = milliseconds;
  return config;
}

void expectOwnTimeout(tuttiComm_t comm, const std::string& call) {
  const std::string text = tuttiGetLastError(comm);
  EXPECT_NE(text.find(call), std::string::npos) << text;
  EXPECT_NE(text.find(kOwnTimeout), std::string::npos) << text;
}

// Rank 0 makes it, and rank 1 stays away until that has ended.
void expectTimeout(const std::function<tuttiResult_t(tuttiComm_t)>& make, const std::string& call) {
  std::atomic<bool> ended{false};
  withCommunicators(2, testConfig(), [&](tuttiComm_t comm, int rank) {
    if (rank == 1) return ended.wait(false);
    EXPECT_EQ(make(comm), tuttiTimeout) << tuttiGetLastError(comm);
    expectOwnTimeout(comm, call);
    ended = true;
    ended.notify_one();
  });
}

TEST(CallDeadline, EndsACollectiveAndAMessage) {
  int value = 1;
  tuttiCallConfig_t config = timedCall(kShort);
  expectTimeout([&](tuttiComm_t comm) { return tuttiBarrierConfig(comm, nullptr, &config); }, "barrier #0");
  expectTimeout(
      [&](tuttiComm_t comm) {
        return tuttiAllReduceConfig(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr, &config);
      },
      "all-reduce #0");
  expectTimeout([&](tuttiComm_t comm) { return tuttiRecvConfig(&value, 1, tuttiInt32, 1, comm, nullptr, &config); },
                "receive from rank 1 #0");
}

TEST(CallDeadline, IsOfThatCallInAGroup) {
  int value = 1;
  tuttiCallConfig_t config = timedCall(kShort);
  expectTimeout(
      [&](tuttiComm_t comm) {
        CHECK_TUTTI(tuttiGroupStart());
        CHECK_TUTTI(tuttiRecv(&value, 1, tuttiInt32, 1, comm, nullptr));
        CHECK_TUTTI(tuttiBarrierConfig(comm, nullptr, &config));
        return tuttiGroupEnd();
      },
      "barrier #0");
}

TEST(CallDeadline, IsOfTheOperationOnAStream) {
  expectTimeout(
      [&](tuttiComm_t comm) {
        tuttiStream_t stream = nullptr;
        tuttiRequest_t request = nullptr;
        CHECK_TUTTI(tuttiStreamCreate(&stream, 0));
        tuttiCallConfig_t config = timedCall(kShort);
        config.request = &request;
        CHECK_TUTTI(tuttiBarrierConfig(comm, stream, &config));
        const tuttiResult_t result = tuttiRequestWait(request);
        CHECK_TUTTI(tuttiRequestFree(request));
        EXPECT_EQ(tuttiStreamDestroy(stream), tuttiTimeout);
        return result;
      },
      "barrier #0");
}

TEST(CallDeadline, IsOfEachStartOfAPersistentCall) {
  std::atomic<bool> ended{false};
  withCommunicators(2, testConfig(), [&](tuttiComm_t comm, int rank) {
    tuttiRequest_t request = nullptr;
    tuttiCallConfig_t config = callConfig(&request, TUTTI_CALL_PERSISTENT);
    config.timeoutMs = rank == 0 ? kShort : 0;  // it may differ
    CHECK_TUTTI(tuttiBarrierConfig(comm, nullptr, &config));
    for (int i = 0; i < 2; ++i) CHECK_TUTTI(tuttiRequestStart(request));
    if (rank == 1) ended.wait(false);
    if (rank == 0) {
      EXPECT_EQ(tuttiRequestStart(request), tuttiTimeout);
      expectOwnTimeout(comm, "barrier #3");
      ended = true;
      ended.notify_one();
    }
    CHECK_TUTTI(tuttiRequestFree(request));
  });
}

TEST(CallDeadline, MayBeLongerThanTheCommunicators) {
  tuttiConfig_t config = testConfig();
  config.operationTimeoutMs = kShort;
  withCommunicators(2, config, [](tuttiComm_t comm, int rank) {
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(3 * kShort));
    const tuttiCallConfig_t call = timedCall(static_cast<int>(longWait().count()));
    EXPECT_EQ(tuttiBarrierConfig(comm, nullptr, &call), tuttiSuccess) << tuttiGetLastError(comm);
  });
}

TEST(CallDeadline, ChangesNothingForTheNextCall) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    const tuttiCallConfig_t call = timedCall(kShort * static_cast<int>(patience()) * 10);
    EXPECT_EQ(tuttiBarrierConfig(comm, nullptr, &call), tuttiSuccess) << tuttiGetLastError(comm);
    const tuttiCallConfig_t least = timedCall(1);
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(tuttiBarrier(comm, nullptr), tuttiSuccess) << tuttiGetLastError(comm);
    EXPECT_EQ(rank == 0 ? tuttiBarrierConfig(comm, nullptr, &least) : tuttiTimeout, tuttiTimeout);
  });
}

TEST(CallDeadline, GivesWayToTheEnvironment) {
  const Settings settings({Setting{"TUTTI_OPERATION_TIMEOUT_MS", "300"}});
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    if (rank == 1) return;
    const tuttiCallConfig_t call = timedCall(static_cast<int>(longWait().count()));
    EXPECT_EQ(tuttiBarrierConfig(comm, nullptr, &call), tuttiTimeout);
    const char* const words = "within 300 ms, the TUTTI_OPERATION_TIMEOUT_MS (config.operationTimeoutMs) of rank 0,";
    EXPECT_NE(std::string(tuttiGetLastError(comm)).find(words), std::string::npos) << tuttiGetLastError(comm);
  });
}

TEST(CallDeadline, IsRefusedBelowZero) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    const tuttiCallConfig_t call = timedCall(-1);
    EXPECT_EQ(tuttiBarrierConfig(comm, nullptr, &call), tuttiInvalidArgument);
    EXPECT_NE(std::string(tuttiGetLastError(comm)).find("config.timeoutMs is -1: milliseconds from 1 on"),
              std::string::npos)
        << tuttiGetLastError(comm);
  });
}

}  // namespace
