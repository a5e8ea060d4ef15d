// Who waits long sleeps, whatever carries what it waits for, and is woken. How often a thread has given its processor
// away of its own accord tells: one that spins or yields never does, nor does one whose sleeps end at once.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "support/api_ranks.h"

namespace {

using namespace tutti::test;

long timesAsleep(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string word; status >> word;)
    if (word == "voluntary_ctxt_switches:") {
      long times = 0;
      status >> times;
      return times;
    }
  return 0;
}

// Waits for ever unless the thread sleeps, again and again: then the test's limit ends it.
void awaitSleep(pid_t thread) {
  const long before = timesAsleep(thread);
  while (timesAsleep(thread) < before + 50) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

using TwoComms = std::array<tuttiComm_t, 2>;

tuttiComm_t joinOver(const tuttiUniqueId& id, int rank, const char* transports) {
  tuttiConfig_t config = testConfig();
  config.transports = transports;
  config.operationTimeoutMs = 120'000;  // rank 1 may have to wait long for rank 0's sleep
  tuttiComm_t comm = nullptr;
  CHECK_TUTTI(tuttiCommInitRankConfig(&comm, 2, id, rank, &config));
  return comm;
}

// Rank 0 makes call(communicators) and must sleep in it; only then does rank 1.
template <class Call>
void sleepsIn(const char* transports, const char* otherTransports, Call call) {
  tuttiUniqueId ids[2];
  for (tuttiUniqueId& id : ids) CHECK_TUTTI(tuttiGetUniqueId(&id));
  std::atomic<pid_t> sleeper{0};
  runRanks(2, [&](int rank) {
    const TwoComms comms{joinOver(ids[0], rank, transports), joinOver(ids[1], rank, otherTransports)};
    call(comms, rank);  // what is made at the first call is made
    if (rank == 0) sleeper = ::gettid();
    while (sleeper == 0) std::this_thread::yield();
    if (rank == 1) awaitSleep(sleeper);
    call(comms, rank);
    for (const tuttiComm_t comm : comms) CHECK_TUTTI(tuttiCommDestroy(comm));
  });
}

float sumOf(tuttiComm_t comm, int rank) {
  float value = static_cast<float>(rank + 1);
  CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiFloat32, tuttiSum, comm, nullptr));
  return value;
}

class Dozing : public testing::TestWithParam<const char*> {};

TEST_P(Dozing, WhoWaitsForOneCallSleeps) {
  sleepsIn(GetParam(), "p2p", [](const TwoComms& comms, int rank) { EXPECT_EQ(sumOf(comms[0], rank), 3); });
}

TEST_P(Dozing, WhoWaitsForAGroupOverTwoCommunicatorsSleeps) {
  for (const char* other : {"p2p", "tcp"})
    sleepsIn(GetParam(), other, [](const TwoComms& comms, int rank) {
      float values[] = {rank * 1.0f, rank * 2.0f};
      CHECK_TUTTI(tuttiGroupStart());
      for (size_t i : {size_t{0}, size_t{1}})
        CHECK_TUTTI(tuttiBroadcast(&values[i], &values[i], 1, tuttiFloat32, 1, comms[i], nullptr));
      CHECK_TUTTI(tuttiGroupEnd());
      EXPECT_EQ(values[0] + values[1], 3);
    });
}

// The one that is done is not listened to any more, and keeps nobody awake.
TEST_P(Dozing, WhoWaitsForTheRestOfAGroupSleeps) {
  sleepsIn(GetParam(), "tcp", [](const TwoComms& comms, int rank) {
    int out = rank, in = -1, own = -1;
    CHECK_TUTTI(tuttiGroupStart());
    CHECK_TUTTI(tuttiSend(&out, 1, tuttiInt32, rank, comms[1], nullptr));  // to itself: done at once
    CHECK_TUTTI(tuttiRecv(&own, 1, tuttiInt32, rank, comms[1], nullptr));
    CHECK_TUTTI(tuttiSend(&out, 1, tuttiInt32, 1 - rank, comms[0], nullptr));
    CHECK_TUTTI(tuttiRecv(&in, 1, tuttiInt32, 1 - rank, comms[0], nullptr));
    CHECK_TUTTI(tuttiGroupEnd());
    EXPECT_EQ(in, 1 - rank);
    EXPECT_EQ(own, rank);
  });
}

INSTANTIATE_TEST_SUITE_P(Over, Dozing, testing::Values("p2p", "shm", "tcp"),
                         [](const auto& over) { return std::string(over.param); });

}  // namespace
