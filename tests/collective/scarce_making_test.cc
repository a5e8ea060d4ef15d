// An allocation of the library's own threads fails, now this one and now that, while communicators are made on them:
// each is made or fails, nobody waits for a deadline, and no thread stays.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "support/api_ranks.h"
#include "support/lacking.h"
#include "support/sanitized.h"

namespace {

using namespace tutti::test;

using Comms = std::vector<tuttiComm_t>;

// What may wait for a rank that could not say that it does not come: nothing, other ranks, the root where they meet.
enum class Waits { kNowhere, kToTheDeadline, kAtItsRoot };

// Which allocation fails depends on how the threads run: in time it is each of them.
int stepOf(Waits waits) { return (tutti::kSanitized ? 31 : 11) * (waits == Waits::kNowhere ? 1 : 5); }

tuttiResult_t stateNow(tuttiComm_t comm) {
  tuttiResult_t state = tuttiSuccess;
  CHECK_TUTTI(tuttiCommGetAsyncError(comm, &state));
  return state;
}

std::string texts(const Comms& comms) {
  std::string all;
  for (const tuttiComm_t comm : comms) all += std::to_string(stateNow(comm)) + ": " + tuttiGetLastError(comm) + '\n';
  return all;
}

// As long as somebody could wait for a rank that has failed, that one has to hear of it.
void expectOneFate(const Comms& comms, Waits waits) {
  bool anyFailed = false;
  for (const tuttiComm_t comm : comms) {
    const tuttiResult_t outcome = outcomeOf(comm);
    EXPECT_TRUE(waits == Waits::kToTheDeadline || outcome != tuttiTimeout) << tuttiGetLastError(comm);
    anyFailed = anyFailed || outcome != tuttiSuccess;
  }
  for (const tuttiComm_t comm : comms)
    EXPECT_TRUE(!anyFailed || comesTrue([&] { return stateNow(comm) != tuttiSuccess; })) << texts(comms);
}

void endAll(Comms& comms) {
  for (tuttiComm_t& comm : comms) {
    if (comm != nullptr) tuttiCommAbort(comm);
    comm = nullptr;
  }
}

Comms newPair() {
  tuttiConfig_t config = testConfig();
  config.heartbeatMs = 5000;  // a survivor stays so long, and a little, for one that could not say that it knows
  Comms comms(2);
  CHECK_TUTTI(tuttiCommInitAllConfig(comms.data(), 2, nullptr, &config));
  return comms;
}

// `make` begins to make communicators of a pair in the background, or at the end of a group.
void expectWholeOrNot(const std::function<void(const Comms& parents, Comms& made)>& make,
                      Waits waits = Waits::kNowhere) {
  std::thread([] {}).join();  // a sanitizer's own thread comes with the first
  const int before = threadsNow();
  Comms parents, made(3);
  lackEach([&] { parents = newPair(); },
           [&] {
             make(parents, made);
             Comms begun;
             for (const tuttiComm_t comm : made)
               if (comm != nullptr) begun.push_back(comm);
             expectOneFate(begun, waits);
             endAll(made);
             endAll(parents);
             if (waits != Waits::kAtItsRoot) {
               EXPECT_TRUE(comesTrue([&] { return threadsNow() <= before; })) << threadsNow() << " for " << before;
             }
           },
           stepOf(waits));
}

void expectBegins(tuttiResult_t result) {
  EXPECT_TRUE(result == tuttiInProgress || result == tuttiSuccess) << result << ": " << tuttiGetLastError(nullptr);
}

TEST(ScarceMemoryOfMakings, ASplitInTheBackground) {
  const tuttiConfig_t config = inBackground();
  expectWholeOrNot(
      [&](const Comms& parents, Comms& made) {
        for (const size_t r : {0, 1}) expectBegins(tuttiCommSplit(parents[r], 0, 0, &made[r], &config));
      },
      Waits::kAtItsRoot);
}

// A rank that could not call may call again, and is waited for.
TEST(ScarceMemoryOfMakings, AShrinkInTheBackground) {
  tuttiConfig_t config = inBackground();
  config.joinTimeoutMs = 300;
  expectWholeOrNot(
      [&](const Comms& parents, Comms& made) {
        for (const size_t r : {0, 1}) expectBegins(tuttiCommShrink(parents[r], nullptr, 0, &made[r], &config, 0));
      },
      Waits::kToTheDeadline);
}

TEST(ScarceMemoryOfMakings, AGroupOfJoins) {
  const tuttiConfig_t config = testConfig();
  expectWholeOrNot(
      [&](const Comms&, Comms& made) {
        tuttiUniqueId id;
        CHECK_TUTTI(tuttiGetUniqueId(&id));
        CHECK_TUTTI(tuttiGroupStart());
        for (const int r : {0, 1})
          CHECK_TUTTI(tuttiCommInitRankConfig(&made[static_cast<size_t>(r)], 2, id, r, &config));
        tuttiGroupEnd();
      },
      Waits::kAtItsRoot);
}

TEST(ScarceMemoryOfMakings, AllRanksInTheBackground) {
  const tuttiConfig_t config = inBackground();
  expectWholeOrNot(
      [&](const Comms&, Comms& made) { expectBegins(tuttiCommInitAllConfig(made.data(), 2, nullptr, &config)); });
}

// The others have joined by then, and wait for nobody any more: they must be told.
TEST(ScarceMemoryOfMakings, ARankThatHasJoined) {
  tuttiConfig_t config = testConfig();
  config.joinTimeoutMs = 100;  // for a rank that has not even called
  bool lacked = true;
  for (int given = 0; lacked && !HasFailure(); ++given) {
    SCOPED_TRACE("after " + std::to_string(given) + " allocations");
    tuttiUniqueId id;
    CHECK_TUTTI(tuttiGetUniqueId(&id));
    Comms comms(2);
    tuttiResult_t results[2] = {};
    std::thread other([&] { results[0] = tuttiCommInitRankConfig(&comms[0], 2, id, 0, &config); });
    ration = {given, Shortage::kOnce};
    results[1] = tuttiCommInitRankConfig(&comms[1], 2, id, 1, &config);
    lacked = std::exchange(ration, {}).lacked;
    other.join();
    EXPECT_EQ(comms[1] != nullptr, results[1] == tuttiSuccess);
    if (comms[0] != nullptr && comms[1] == nullptr) {
      EXPECT_TRUE(comesTrue([&] { return stateNow(comms[0]) != tuttiSuccess; }));
    }
    endAll(comms);
  }
}

TEST(ScarceMemoryOfMakings, Growing) {
  const tuttiConfig_t config = inBackground();
  expectWholeOrNot(
      [&](const Comms& parents, Comms& made) {
        tuttiUniqueId id;
        CHECK_TUTTI(tuttiCommGetUniqueId(parents[0], &id));
        expectBegins(tuttiCommGrow(parents[0], 3, &id, -1, &made[0], &config));
        expectBegins(tuttiCommGrow(parents[1], 3, nullptr, -1, &made[1], &config));
        expectBegins(tuttiCommGrow(nullptr, 3, &id, 2, &made[2], &config));
      },
      Waits::kAtItsRoot);
}

}  // namespace
