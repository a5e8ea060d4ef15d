// Calls for which there is no memory: the error is told, and what was begun of them is undone.
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <new>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "support/api_ranks.h"
#include "support/every_call.h"
#include "support/lacking.h"
#include "support/patience.h"
#include "support/record_folder.h"
#include "support/sanitized.h"
#include "support/scarce_memory.h"
#include "support/variables.h"

// Every form that the forms of delete below may be given memory of: a sanitizer's own new does not go with our delete.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return tutti::test::failsNow() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new(size_t bytes) {
  if (void* const memory = operator new(bytes, std::nothrow)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (!tutti::test::givenBack.keep(memory)) std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { operator delete(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { operator delete(memory); }

namespace {

using namespace tutti::test;
using tutti::kSanitized;

// `body` with its first, its second, ... allocation failing, or with all from there on, until it gets by with what it
// is given: how many that are.
template <class Body>
int failEachAllocation(Shortage lack, Body body) {
  for (int given = 0;; ++given) {
    ration = {given, lack};
    const tuttiResult_t result = body();
    const bool lacked = std::exchange(ration, {}).lacked;
    // Without memory for what is only told or remembered, a call goes on.
    EXPECT_TRUE(result == tuttiSuccess || (lacked && result == tuttiSystemError))
        << result << ' ' << tuttiGetLastError(nullptr);
    if (!lacked || (result != tuttiSuccess && result != tuttiSystemError)) return given;
  }
}

// What was used of what was given.
int initAll(int given) {
  tuttiComm_t comms[3] = {};
  ration = {given, Shortage::kOnce};
  const tuttiResult_t result = tuttiCommInitAll(comms, 3, nullptr);
  const auto left = std::exchange(ration, {});
  EXPECT_TRUE(result == tuttiSuccess || (left.lacked && result == tuttiSystemError)) << tuttiGetLastError(nullptr);
  for (const tuttiComm_t comm : comms) {
    EXPECT_EQ(comm != nullptr, result == tuttiSuccess);
    if (result == tuttiSuccess) CHECK_TUTTI(tuttiCommDestroy(comm));
  }
  return given - left.left;
}

// Each rank has a thread: one that nobody has a handle of would keep it for ever. A suite of its own, since places of
// joins that fail have threads too.
TEST(ScarceMemoryOfAll, LeavesNoRankBehind) {
  constexpr int kPlenty = 1'000'000, kForHandles = 7;
  std::thread([] {}).join();  // a sanitizer's own thread comes with the first
  const int before = threadsNow();
  initAll(kPlenty);
  const int used = initAll(kPlenty);
  for (int less = 1; less <= kForHandles; ++less) initAll(used - less);
  EXPECT_TRUE(comesTrue([&] { return threadsNow() <= before; })) << threadsNow() << " for " << before;
}

// The tests below, with one allocation that fails and with all that fail from there on.
class ScarceMemory : public testing::TestWithParam<Shortage> {
 protected:
  template <class Body>
  int failEachAllocation(Body body) {
    return ::failEachAllocation(GetParam(), body);
  }
};
INSTANTIATE_TEST_SUITE_P(Lack, ScarceMemory, testing::Values(Shortage::kOnce, Shortage::kForGood),
                         [](const auto& of) { return of.param == Shortage::kOnce ? "Once" : "ForGood"; });

// Were a turn left taken, the next call would wait for it for ever.
TEST_P(ScarceMemory, ACallThatCannotBeQueuedTakesNoTurn) {
  withCommunicators(1, testConfig(), [this](tuttiComm_t comm, int) {
    tuttiStream_t stream = nullptr;
    CHECK_TUTTI(tuttiStreamCreate(&stream, 0));
    int value = 1;
    EXPECT_GT(failEachAllocation([&] { return tuttiBroadcast(&value, &value, 1, tuttiInt32, 0, comm, stream); }), 0);
    CHECK_TUTTI(tuttiStreamSynchronize(stream));
    CHECK_TUTTI(tuttiBarrier(comm, nullptr));
    CHECK_TUTTI(tuttiStreamDestroy(stream));
  });
}

// Queues a sum of one number on each of three streams, in one group. Success only if all ran. (None in the caller's
// thread: it would wait for its turn with the little memory that is left, and what waiting takes is another matter.)
tuttiResult_t runGroup(tuttiComm_t comm, const tuttiStream_t (&streams)[3]) {
  const int in[3] = {1, 2, 3};
  int out[3] = {};
  bool queued = tuttiGroupStart() == tuttiSuccess;
  for (int i = 0; i < 3; ++i)
    queued = !tuttiAllReduce(&in[i], &out[i], 1, tuttiInt32, tuttiSum, comm, streams[i]) && queued;
  const tuttiResult_t result = tuttiGroupEnd();
  ration.left = -1;
  for (auto stream : streams) CHECK_TUTTI(tuttiStreamSynchronize(stream));
  EXPECT_TRUE(queued || result != tuttiSuccess) << "a group without one of its calls has run";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(out[i], result == tuttiSuccess ? in[i] : 0) << "call " << i;
  return result;
}

TEST_P(ScarceMemory, AGroupRunsAsAWholeOrNotAtAll) {
  withCommunicators(1, testConfig(), [this](tuttiComm_t comm, int) {
    tuttiStream_t streams[3] = {};
    for (auto& stream : streams) CHECK_TUTTI(tuttiStreamCreate(&stream, 0));
    EXPECT_EQ(runGroup(comm, streams), tuttiSuccess);  // and the plan is made
    EXPECT_GT(failEachAllocation([&] { return runGroup(comm, streams); }), 10);
    CHECK_TUTTI(tuttiBarrier(comm, nullptr));
    for (auto stream : streams) CHECK_TUTTI(tuttiStreamDestroy(stream));
  });
}

// Were it only the start that fails, whoever asks for the request would hear that all is well.
TEST_P(ScarceMemory, ARequestKnowsThatItsStartHasFailed) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    int value = 1;
    tuttiRequest_t request = nullptr;
    const tuttiCallConfig_t config = callConfig(&request, TUTTI_CALL_PERSISTENT);
    CHECK_TUTTI(tuttiAllReduceConfig(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr, &config));
    CHECK_TUTTI(tuttiCommRevoke(comm, 0));
    bool lacked = true;
    for (int given = 0; lacked; ++given) {
      ration = {given, GetParam()};
      const tuttiResult_t result = tuttiRequestStart(request);
      lacked = std::exchange(ration, {}).lacked;
      EXPECT_TRUE(result == tuttiRemoteError || (lacked && result == tuttiSystemError)) << result;
      EXPECT_EQ(tuttiRequestTest(request), result) << given;
    }
    CHECK_TUTTI(tuttiRequestFree(request));
  });
}

tuttiUniqueId newId() {
  const Unlimited memory;
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  return id;
}

// A communicator of this thread alone, whose end never fails.
class Alone {
 public:
  Alone() {
    const Unlimited memory;
    const tuttiConfig_t config = testConfig();
    CHECK_TUTTI(tuttiCommInitRankConfig(&comm_, 1, newId(), 0, &config));
  }
  ~Alone() {
    const Unlimited memory;
    EXPECT_EQ(tuttiCommDestroy(comm_), tuttiSuccess);
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  operator tuttiComm_t() const { return comm_; }

 private:
  tuttiComm_t comm_ = nullptr;
};

// Ends what a call made; what the call returned.
template <class Make>
tuttiResult_t ended(Make make) {
  tuttiComm_t made = nullptr;
  const tuttiResult_t result = make(&made);
  const Unlimited memory;
  EXPECT_EQ(made != nullptr, result == tuttiSuccess);
  EXPECT_EQ(tuttiCommDestroy(made), tuttiSuccess);
  return result;
}

// Places of joins that fail stay open for a while.
void allowManyDescriptors() {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST_P(ScarceMemory, JoiningFailsAsAWhole) {
  allowManyDescriptors();
  const tuttiConfig_t config = testConfig();
  EXPECT_GT(failEachAllocation([&] {
              const tuttiUniqueId id = newId();
              return ended([&](auto made) { return tuttiCommInitRankConfig(made, 1, id, 0, &config); });
            }),
            20);
}

TEST_P(ScarceMemory, ASplitFailsAsAWhole) {
  EXPECT_GT(failEachAllocation([&] {
              const Alone parent;
              return ended([&](auto made) { return tuttiCommSplit(parent, 0, 0, made, nullptr); });
            }),
            20);
}

TEST_P(ScarceMemory, AShrinkFailsAsAWhole) {
  EXPECT_GT(failEachAllocation([&] {
              const Alone parent;
              {
                const Unlimited memory;
                EXPECT_EQ(tuttiCommRevoke(parent, 0), tuttiSuccess);
              }
              return ended([&](auto made) { return tuttiCommShrink(parent, nullptr, 0, made, nullptr, 0); });
            }),
            20);
}

TEST_P(ScarceMemory, AJoinAsTheLauncherSaysFailsAsAWhole) {
  allowManyDescriptors();
  const Settings place({Setting{"TUTTI_LAUNCHER", "tutti"}, Setting{"TUTTI_RANK", "0"}, Setting{"TUTTI_SIZE", "1"}});
  const tuttiConfig_t config = testConfig();
  EXPECT_GT(failEachAllocation([&] { return ended([&](auto made) { return tuttiCommInitEnv(made, &config); }); }), 20);
}

// An id that was given out is good for a join.
TEST_P(ScarceMemory, AUniqueIdIsWholeOrNone) {
  allowManyDescriptors();
  const tuttiConfig_t config = testConfig();
  EXPECT_GT(failEachAllocation([&] {
              tuttiUniqueId id;
              const tuttiResult_t result = tuttiGetUniqueId(&id);
              if (result != tuttiSuccess) return result;
              const Unlimited memory;
              return ended([&](auto made) { return tuttiCommInitRankConfig(made, 1, id, 0, &config); });
            }),
            5);
}

// A communicator that could not be destroyed can be destroyed; one that was is gone; and the other rank need not care.
TEST_P(ScarceMemory, ADestroyFailsAsAWhole) {
  failEachAllocation([&] {
    tuttiComm_t comms[2] = {};
    {
      const Unlimited memory;
      CHECK_TUTTI(tuttiCommInitAll(comms, 2, nullptr));
    }
    const tuttiResult_t result = tuttiCommDestroy(comms[0]);
    const Unlimited memory;
    EXPECT_EQ(tuttiCommDestroy(comms[0]), result == tuttiSuccess ? tuttiInvalidArgument : tuttiSuccess);
    EXPECT_EQ(tuttiCommDestroy(comms[1]), tuttiSuccess);
    return result;
  });
}

// What a call makes, and another call ends, each without memory in its turn.
template <class Make, class End>
tuttiResult_t madeAndEnded(Make make, End end) {
  const tuttiResult_t made = make();
  if (made != tuttiSuccess) return made;
  const tuttiResult_t result = end();
  const Unlimited memory;
  if (result != tuttiSuccess) {
    EXPECT_EQ(end(), tuttiSuccess) << "half an end";
  }
  return result;
}

TEST_P(ScarceMemory, MemoryIsGivenAndTakenAsAWhole) {
  EXPECT_GT(failEachAllocation([&] {
              void* memory = nullptr;
              return madeAndEnded([&] { return tuttiMemAlloc(&memory, 100); }, [&] { return tuttiMemFree(memory); });
            }),
            0);
}

TEST_P(ScarceMemory, ABufferIsRegisteredAsAWhole) {
  const Alone comm;
  char buffer[100] = {};
  EXPECT_GT(failEachAllocation([&] {
              void* handle = nullptr;
              return madeAndEnded([&] { return tuttiCommRegister(comm, buffer, sizeof buffer, &handle, 0); },
                                  [&] { return tuttiCommDeregister(comm, handle); });
            }),
            0);
}

TEST_P(ScarceMemory, AnOperatorIsMadeAsAWhole) {
  const Alone comm;
  float factor = 2;
  EXPECT_GT(failEachAllocation([&] {
              tuttiRedOp_t op = tuttiSum;
              return madeAndEnded(
                  [&] { return tuttiRedOpCreatePreMulSum(&op, &factor, tuttiFloat32, tuttiScalarHostImmediate, comm); },
                  [&] { return tuttiRedOpDestroy(op, comm); });
            }),
            0);
  float value = 3;
  tuttiRedOp_t op = tuttiSum;
  CHECK_TUTTI(tuttiRedOpCreatePreMulSum(&op, &factor, tuttiFloat32, tuttiScalarHostImmediate, comm));
  CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiFloat32, op, comm, nullptr));
  EXPECT_EQ(value, 6);
}

// The record has what it is made for: a call, texts, more than one rank's worth of brackets.
TEST_P(ScarceMemory, ARecordIsWrittenAsAWholeOrNotAtAll) {
  const auto folder = std::filesystem::temp_directory_path() / ("tutti-scarce-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::string path = folder / "record.json";
  const Alone comm;
  int value = 1;
  CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr));
  EXPECT_GT(failEachAllocation([&] {
              const tuttiResult_t result = tuttiCommDump(comm, path.c_str());
              const Unlimited memory;
              EXPECT_EQ(std::filesystem::remove(path), result == tuttiSuccess);
              EXPECT_TRUE(std::filesystem::is_empty(folder)) << "a draft is left";
              return result;
            }),
            20);
  removeRecordFolder(folder);
}

// The first call makes plans and links; and each is one of two, so that the other rank has to be told.
constexpr size_t kParts[] = {100, 60}, kPlaces[] = {0, 100}, kEqual[] = {100, 100};
using Step = tuttiResult_t (*)(tuttiComm_t comm, int rank, int* buffer);
constexpr Step kSteps[] = {
    [](tuttiComm_t c, int, int* b) { return tuttiAllReduce(b, b, 100, tuttiInt32, tuttiSum, c, nullptr); },
    [](tuttiComm_t c, int, int* b) { return tuttiBroadcast(b, b, 100, tuttiInt32, 1, c, nullptr); },
    [](tuttiComm_t c, int, int* b) { return tuttiReduce(b, b, 100, tuttiInt32, tuttiMax, 0, c, nullptr); },
    [](tuttiComm_t c, int, int* b) { return tuttiAllGather(b, b + 200, 100, tuttiInt32, c, nullptr); },
    [](tuttiComm_t c, int, int* b) { return tuttiReduceScatter(b, b + 200, 100, tuttiInt32, tuttiSum, c, nullptr); },
    [](tuttiComm_t c, int, int* b) { return tuttiAllToAll(b, b + 200, 100, tuttiInt32, c, nullptr); },
    [](tuttiComm_t c, int, int* b) { return tuttiGather(b, b + 200, 100, tuttiInt32, 0, c, nullptr); },
    [](tuttiComm_t c, int, int* b) { return tuttiScatter(b, b + 200, 100, tuttiInt32, 1, c, nullptr); },
    [](tuttiComm_t c, int, int* b) { return tuttiAllGatherV(b, b + 200, kParts, kPlaces, tuttiInt32, c, nullptr); },
    [](tuttiComm_t c, int, int* b) {
      return tuttiReduceScatterV(b, b + 200, kParts, tuttiInt32, tuttiSum, c, nullptr);
    },
    [](tuttiComm_t c, int, int* b) {
      return tuttiAllToAllV(b, kEqual, kPlaces, b + 200, kEqual, kPlaces, tuttiInt32, c, nullptr);
    },
    [](tuttiComm_t c, int r, int* b) {
      return tuttiGatherV(b, kParts[r], b + 200, kParts, kPlaces, tuttiInt32, 0, c, nullptr);
    },
    [](tuttiComm_t c, int r, int* b) {
      return tuttiScatterV(b, kParts, kPlaces, b + 200, kParts[r], tuttiInt32, 1, c, nullptr);
    },
    [](tuttiComm_t c, int, int*) { return tuttiBarrier(c, nullptr); },
    [](tuttiComm_t c, int r, int* b) {
      return r == 0 ? tuttiSend(b, 100, tuttiInt32, 1, c, nullptr) : tuttiRecv(b, 100, tuttiInt32, 0, c, nullptr);
    },
};

tuttiResult_t runPair(Step step, const char* transports = nullptr) {
  const tuttiUniqueId id = newId();
  tuttiConfig_t config = testConfig();
  config.transports = transports;
  const auto run = [&](int rank, int left) {
    tuttiComm_t comm = nullptr;
    CHECK_TUTTI(tuttiCommInitRankConfig(&comm, 2, id, rank, &config));
    std::vector<int> buffer(400);
    ration.left = left;
    const tuttiResult_t result = step(comm, rank, buffer.data());
    ration.left = -1;
    EXPECT_EQ(tuttiCommDestroy(comm), tuttiSuccess);
    return result;
  };
  const int left = std::exchange(ration.left, -1);
  tuttiResult_t theirs = tuttiSuccess;
  std::thread other([&] { theirs = run(1, -1); });
  const tuttiResult_t mine = run(0, left);
  other.join();
  // That there is no link both find out, and either may be the first to say so.
  const bool noLink =
      transports != nullptr && theirs == tuttiSystemError && (mine == tuttiRemoteError || mine == tuttiSystemError);
  EXPECT_TRUE(theirs == tuttiSuccess || (theirs == tuttiRemoteError && mine != tuttiSuccess) || noLink) << theirs;
  return noLink ? tuttiSystemError : mine;
}

TEST_P(ScarceMemory, ACallFailsOnBothRanksOrSucceeds) {
  allowManyDescriptors();
  for (const Step step : std::span(kSteps).first(kSanitized ? 1 : std::size(kSteps)))
    failEachAllocation([step] { return runPair(step); });
}

// What makes a link between processes is of its own for each transport.
TEST_P(ScarceMemory, ALinkFailsOnBothRanksOrStands) {
  allowManyDescriptors();
  constexpr const char* kTransports[] = {"shm", "tcp"};
  for (const char* transports : std::span(kTransports).first(kSanitized ? 1 : std::size(kTransports)))
    EXPECT_GT(failEachAllocation([=] { return runPair(kSteps[0], transports); }), 20) << transports;
}

// The other rank is told, rather than left to wait for a part of the split that never comes; whoever of them leads it.
TEST_P(ScarceMemory, ASplitOfTwoFailsOnBothRanksOrSucceeds) {
  allowManyDescriptors();
  constexpr Step kSplits[] = {
      [](tuttiComm_t parent, int rank, int*) {
        return ended([&](auto made) { return tuttiCommSplit(parent, 0, rank, made, nullptr); });
      },
      [](tuttiComm_t parent, int rank, int*) {
        return ended([&](auto made) { return tuttiCommSplit(parent, 0, -rank, made, nullptr); });
      },
      [](tuttiComm_t parent, int, int*) {
        return ended([&](auto made) { return tuttiCommDuplicate(parent, made, nullptr); });
      }};
  for (const Step split : kSplits) EXPECT_GT(failEachAllocation([split] { return runPair(split); }), 20);
}

}  // namespace
