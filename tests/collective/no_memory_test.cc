// Memory that stays short, on the caller's thread or on the library's own: every call returns, and the process lives.
#include <gtest/gtest.h>

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "job/unique_id.h"
#include "join/root.h"
#include "support/api_ranks.h"
#include "support/patience.h"
#include "support/record_folder.h"
#include "support/sanitized.h"
#include "support/scarce_memory.h"
#include "support/variables.h"

namespace {

using namespace tutti::test;
using tutti::kSanitized;

constexpr auto kAWhile = std::chrono::milliseconds(300);  // longer than what the library does now and then

struct Pair {
  Pair() { CHECK_TUTTI(tuttiCommInitAll(comms, 2, nullptr)); }
  ~Pair() {
    for (const tuttiComm_t comm : comms) tuttiCommDestroy(comm);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  tuttiComm_t comms[2] = {};
};

// Aborts rank 0 with so much memory. Whether that was all it wanted.
bool abortWith(Ration given) {
  Pair pair;
  ration = given;
  const tuttiResult_t aborted = tuttiCommAbort(pair.comms[0]);
  const bool lacked = std::exchange(ration, {}).lacked;
  EXPECT_EQ(aborted, tuttiSuccess);
  EXPECT_EQ(tuttiCommAbort(std::exchange(pair.comms[0], nullptr)), tuttiSuccess);
  int value = 1;
  EXPECT_EQ(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, pair.comms[1], nullptr), tuttiRemoteError)
      << given.left << ": " << tuttiGetLastError(pair.comms[1]);
  return !lacked;
}

void abortWithEverLess() {
  const Settings hang({Setting{"TUTTI_OPERATION_TIMEOUT_MS", std::to_string(longWait().count())}});
  for (const Shortage lack : {Shortage::kOnce, Shortage::kForGood})
    for (int given = 0; !abortWith({given, lack}); ++given) {
    }
}

TEST(NoMemory, TheOthersHearOfAnAbortAllTheSame) { abortWithEverLess(); }

// What cannot be asked to be written down is told first.
TEST(NoMemory, TheOthersHearOfAnAbortThatShouldLeaveARecord) {
  const auto folder = std::filesystem::temp_directory_path() / ("tutti-aborts-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  {
    const Settings records({Setting{"TUTTI_DUMP_DIR", folder}});
    abortWithEverLess();
  }
  removeRecordFolder(folder);
}

// The other rank never comes. Without memory for a time-out either, the join ends at once, and never for nothing.
TEST(NoMemory, AJoinEndsWhosePlaneStarves) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiConfig_t config = testConfig();
  config.joinTimeoutMs = 1000;
  config.heartbeatMs = 100;
  tuttiComm_t comm = nullptr;
  const OthersStarve starving;
  EXPECT_NE(tuttiCommInitRankConfig(&comm, 2, id, 0, &config), tuttiSuccess);
  EXPECT_STRNE(tuttiGetLastError(nullptr), "");
}

TEST(NoMemory, CallsThatAreRefusedAreRefusedInShort) {
  const Pair pair;
  const tuttiComm_t comm = pair.comms[0];
  int value = 1;
  tuttiStream_t stream = nullptr;
  tuttiComm_t child = nullptr;
  const auto starving = [](auto call) {
    ration = {0, Shortage::kForGood};
    const tuttiResult_t result = call();
    ration = {};
    EXPECT_NE(result, tuttiSuccess);
    EXPECT_STRNE(tuttiGetLastError(nullptr), "");
    EXPECT_STRNE(tuttiGetLastProcessError(), "");
  };
  starving([&] { return tuttiStreamCreate(&stream, 0); });
  starving([&] { return tuttiAllReduce(nullptr, &value, 1, tuttiInt32, tuttiSum, comm, nullptr); });
  starving([&] { return tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, nullptr, nullptr); });
  starving([&] { return tuttiCommSplit(comm, 0, 0, &child, nullptr); });
  starving([&] { return tuttiCommDump(comm, "/nowhere/at/all/to/write/a/record"); });
  starving([&] { return tuttiGroupEnd(); });
  starving([&] {
    tuttiGroupStart();
    tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr);
    return tuttiGroupEnd();
  });
  EXPECT_EQ(tuttiCommRevoke(comm, 0), tuttiSuccess);
}

TEST(NoMemory, AStreamWhoseThreadStarvesSaysThatTheMachineLacksSomething) {
  const Pair pair;
  tuttiStream_t stream = nullptr;
  CHECK_TUTTI(tuttiStreamCreate(&stream, 0));
  int value = 1;
  {
    const OthersStarve starving;
    CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, pair.comms[0], stream));
    EXPECT_EQ(tuttiStreamSynchronize(stream), tuttiSystemError) << tuttiGetLastError(nullptr);
  }
  CHECK_TUTTI(tuttiStreamDestroy(stream));
}

// In a child of its own each, which has written no line yet: 0 when it lacked memory, 1 when it did not.
int joinInChild(int given) {
  const pid_t child = ::fork();
  if (child == 0) {
    tuttiUniqueId id;
    tuttiComm_t comm = nullptr;
    if (tuttiGetUniqueId(&id) != tuttiSuccess) ::_exit(2);
    ration = {given, Shortage::kForGood};
    const tuttiResult_t result = tuttiCommInitRank(&comm, 1, id, 0);
    ::_exit(ration.lacked ? 0 : result == tuttiSuccess ? 1 : 3);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(NoMemory, TheFirstLineOfAProcessIsLeftOut) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's threads and forks do not go together";
  ::setenv("TUTTI_NO_SUCH_SETTING", "1", 1);
  int how = 0;
  for (int given = 0; how == 0; ++given) how = joinInChild(given);
  ::unsetenv("TUTTI_NO_SUCH_SETTING");
  EXPECT_EQ(how, 1);
}

const char* const kNoMemoryOfOurs = "what there is no such communicator for";

void failLate(void* untouched) {
  int count = 0;
  tuttiCommCount(nullptr, &count);
  const std::string text = tuttiGetLastError(nullptr);
  tuttiGroupStart();
  tuttiAllReduce(&count, &count, 1, tuttiInt32, tuttiSum, nullptr, nullptr);
  const bool spoiled = tuttiGroupEnd() == tuttiInvalidArgument;
  const bool seen = std::strcmp(tuttiGetLastProcessError(), "tuttiAllReduce: comm is NULL") == 0;
  *static_cast<bool*>(untouched) = spoiled && seen && givenBack.untouched() && text == "tuttiCommCount: comm is NULL";
  givenBack.release();
}

// The destructors of pthread_setspecific() run after those of the thread's own objects.
TEST(NoMemory, AThreadMayFailToItsVeryEnd) {
  pthread_key_t key;
  ASSERT_EQ(::pthread_key_create(&key, failLate), 0);
  bool untouched = false;
  std::thread([&] {
    ::pthread_setspecific(key, &untouched);
    EXPECT_EQ(tuttiMemFree(const_cast<char*>(kNoMemoryOfOurs)), tuttiInvalidArgument);
    EXPECT_GT(std::strlen(tuttiGetLastError(nullptr)), sizeof(std::string));
    tuttiGroupStart();
    EXPECT_EQ(tuttiBarrier(nullptr, nullptr), tuttiInvalidArgument);
    EXPECT_EQ(tuttiGroupEnd(), tuttiInvalidArgument);
    givenBack.keeps = true;
  }).join();
  EXPECT_TRUE(untouched);
  ::pthread_key_delete(key);
}

// The looks of the writer of records come every tenth of a second.
TEST(NoMemory, TheWriterOfRecordsGoesOnWhenThereIsMemoryAgain) {
  const auto folder = std::filesystem::temp_directory_path() / ("tutti-no-memory-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  ::setenv("TUTTI_DUMP_DIR", folder.c_str(), 1);
  {
    const Pair pair;
    {
      const OthersStarve starving;
      std::this_thread::sleep_for(kAWhile);
    }
    EXPECT_EQ(tuttiCommRevoke(pair.comms[0], 0), tuttiSuccess);
    for (int i = 0; i < 200 && std::filesystem::is_empty(folder); ++i) std::this_thread::sleep_for(kAWhile / 3);
    EXPECT_FALSE(std::filesystem::is_empty(folder));
  }
  ::unsetenv("TUTTI_DUMP_DIR");
  removeRecordFolder(folder);
}

uint64_t jobOf(const tuttiUniqueId& id) {
  tutti::control::RawUniqueId raw{};
  static_assert(sizeof raw == sizeof id.internal);
  std::memcpy(raw.data(), id.internal, raw.size());
  return tutti::control::decode(raw).job;
}

void callAndLeave(const std::string& name) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path + 1, name.data(), name.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&to),
                      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())),
            0);
  std::this_thread::sleep_for(kAWhile);
  ::close(fd);
}

TEST(NoMemory, ACallerThatThereIsNoMemoryForKeepsNobodyElseOut) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  {
    const std::string name = tutti::control::rootUnixName(jobOf(id));
    const OthersStarve starving;
    callAndLeave(name);
  }
  const tuttiConfig_t config = testConfig();
  runRanks(2, [&](int rank) {
    tuttiComm_t comm = nullptr;
    CHECK_TUTTI(tuttiCommInitRankConfig(&comm, 2, id, rank, &config));
    EXPECT_EQ(tuttiCommDestroy(comm), tuttiSuccess);
  });
}

}  // namespace
