// Joins in the background: what ends them early, and what the library's thread must not do meanwhile.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emulation/other_process.h"
#include "job/unique_id.h"
#include "process/fd.h"
#include "support/api_ranks.h"
#include "support/variables.h"

namespace {

// Set while only this thread may look through the environment.
std::atomic<pid_t> onlyReader{0};
std::atomic<int> readsByOthers{0};

}  // namespace

// The program's own, of which libraries in other files take notice too.
extern "C" __attribute__((visibility("default"))) char* secure_getenv(const char* name) noexcept {
  const pid_t reader = onlyReader.load();
  if (reader != 0 && reader != ::gettid()) {
    ++readsByOthers;
    for (const char* part : {"another thread reads ", name, "\n"})
      if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  }
  const size_t length = std::strlen(name);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  return nullptr;
}
extern "C" __attribute__((visibility("default"))) char* getenv(const char* name) noexcept {
  return secure_getenv(name);
}

namespace {

using namespace tutti::test;

// Had the abort not ended it, it would have ended otherwise at its deadline.
void expectAbortEndsJoin(std::vector<Setting> place) {
  const Settings settings(std::move(place));
  const tuttiConfig_t config = inBackground();
  tuttiComm_t comm = nullptr;
  ASSERT_EQ(tuttiCommInitEnv(&comm, &config), tuttiInProgress) << tuttiGetLastError(nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // for the thread to get to where it waits
  CHECK_TUTTI(tuttiCommAbort(comm));
  EXPECT_EQ(outcomeOf(comm), tuttiRemoteError) << tuttiGetLastError(comm);
  EXPECT_STREQ(tuttiGetLastError(comm), "rank 1 stopped joining: it was aborted");
}

TEST(BackgroundJoin, AnAbortEndsTheWaitForAnIdFile) {
  expectAbortEndsJoin(
      {{"TUTTI_RANK", "1"}, {"TUTTI_SIZE", "2"}, {"TUTTI_ID_FILE", ::testing::TempDir() + "tutti-id-never"}});
}

TEST(BackgroundJoin, AnAbortEndsTheWaitForAName) {
  expectAbortEndsJoin({{"TUTTI_RANK", "1"}, {"TUTTI_SIZE", "2"}, {"TUTTI_ROOT", "no-such-host.invalid:4000"}});
}

TEST(BackgroundJoin, AnAbortEndsTheWaitForTheProcessManager) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const tutti::UniqueFd silent(pair[0]), ours(pair[1]);
  expectAbortEndsJoin(
      {{"TUTTI_LAUNCHER", "mpich"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_FD", std::to_string(ours.get())}});
}

std::string hexIn(const tuttiUniqueId& id) {
  tutti::control::RawUniqueId raw;
  std::memcpy(raw.data(), id.internal, raw.size());
  return tutti::control::toHex(raw);
}

// The place from the environment.
TEST(BackgroundJoinAlone, DISABLED_AbortedAtOnce) {
  const tuttiConfig_t config = inBackground();
  tuttiComm_t comm = nullptr;
  ASSERT_EQ(tuttiCommInitEnv(&comm, &config), tuttiInProgress) << tuttiGetLastError(nullptr);
  CHECK_TUTTI(tuttiCommAbort(comm));
}

TEST(BackgroundJoin, TheOthersHearOfAnAbortAlsoWhereTheProcessEndsAtOnce) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  const pid_t other = tutti::emulation::startOtherProcess("BackgroundJoinAlone.DISABLED_AbortedAtOnce",
                                                          {"TUTTI_RANK=1", "TUTTI_SIZE=2", "TUTTI_ID=" + hexIn(id)});
  const tuttiConfig_t config = testConfig();
  tuttiComm_t comm = nullptr;
  tuttiResult_t result = tuttiCommInitRankConfig(&comm, 2, id, 0, &config);
  const bool joined = result == tuttiSuccess;  // the other one had joined before it came to its abort
  if (joined) result = tuttiBarrier(comm, nullptr);
  EXPECT_EQ(result, tuttiRemoteError);
  const std::string text = tuttiGetLastError(nullptr);
  for (const char* words : {"rank 1 (host ", joined ? ", pid " : "left while joining: "})
    EXPECT_NE(text.find(words), std::string::npos) << text;
  if (joined) {
    CHECK_TUTTI(tuttiCommAbort(comm));
  }
  EXPECT_EQ(tutti::emulation::statusOf(other), 0);
}

void joinAlone(tuttiResult_t (*join)(tuttiComm_t* comm, const tuttiConfig_t* config)) {
  onlyReader = ::gettid();
  const tuttiConfig_t config = inBackground();
  tuttiComm_t comm = nullptr;
  EXPECT_EQ(join(&comm, &config), tuttiInProgress) << tuttiGetLastError(nullptr);
  EXPECT_EQ(outcomeOf(comm), tuttiSuccess) << tuttiGetLastError(comm);
  onlyReader = 0;
  CHECK_TUTTI(tuttiCommDestroy(comm));
}

tuttiResult_t joinById(tuttiComm_t* comm, const tuttiConfig_t* config) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  return tuttiCommInitRankConfig(comm, 1, id, 0, config);
}

// In processes of their own: much is read when it is first needed.
TEST(BackgroundJoinAlone, DISABLED_ById) {
  joinAlone(joinById);
  EXPECT_EQ(readsByOthers, 0);
}

TEST(BackgroundJoinAlone, DISABLED_AsTheLauncherSays) {
  joinAlone(tuttiCommInitEnv);
  EXPECT_EQ(readsByOthers, 0);
}

// The program may change it then, which moves what a reader is looking at.
TEST(BackgroundJoin, ReadsTheEnvironmentOnTheCallersThreadOnly) {
  for (const std::string level : {"warn", "info"})
    for (const std::string way : {"ById", "AsTheLauncherSays"})
      EXPECT_EQ(tutti::emulation::statusOfOtherProcess(
                    "BackgroundJoinAlone.DISABLED_" + way,
                    {"TUTTI_DEBUG=" + level, "TUTTI_RANK=0", "TUTTI_SIZE=1", "TUTTI_ROOT=localhost:4000"}),
                0)
          << way << " with TUTTI_DEBUG=" << level;
}

}  // namespace
