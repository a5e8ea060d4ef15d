// What the environment says to a communicator, and what TUTTI_DEBUG makes it tell.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "emulation/other_process.h"
#include "support/api_ranks.h"
#include "support/variables.h"

namespace {

using namespace tutti::test;

std::string algorithmOf(tuttiComm_t comm) {
  float value = 1;
  CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiFloat32, tuttiSum, comm, nullptr));
  return lastAlgorithm(comm);
}

// The algorithms of a communicator, of its child and of what it shrinks to, all told to use "ring".
std::vector<std::string> algorithmsOfAFamily(tuttiComm_t comm, const tuttiConfig_t& config) {
  tuttiComm_t child = nullptr, shrunk = nullptr;
  std::vector<std::string> names{algorithmOf(comm)};
  CHECK_TUTTI(tuttiCommSplit(comm, 0, 0, &child, &config));
  names.push_back(algorithmOf(child));
  CHECK_TUTTI(tuttiCommDestroy(child));
  CHECK_TUTTI(tuttiCommShrink(comm, nullptr, 0, &shrunk, &config, 0));
  names.push_back(algorithmOf(shrunk));
  CHECK_TUTTI(tuttiCommDestroy(shrunk));
  return names;
}

TEST(Environment, WinsOverTheConfigurationOfAWholeFamily) {
  tuttiConfig_t config = testConfig();
  config.algorithm = "ring";
  const auto expect = [&](const std::string& name) {
    withCommunicators(2, config, [&](tuttiComm_t comm, int) {
      EXPECT_EQ(algorithmsOfAFamily(comm, config), (std::vector<std::string>{name, name, name}));
    });
  };
  expect("ring");
  const Settings settings({Setting{"TUTTI_ALGO", "tree"}});
  expect("tree");
}

TEST(Environment, ItsDeadlineWins) {
  const Settings settings({Setting{"TUTTI_OPERATION_TIMEOUT_MS", "300"}});
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    if (rank == 1) return;
    EXPECT_EQ(tuttiBarrier(comm, nullptr), tuttiTimeout);
    const char* const words = "within 300 ms, the TUTTI_OPERATION_TIMEOUT_MS (config.operationTimeoutMs) of rank 0,";
    EXPECT_NE(std::string(tuttiGetLastError(comm)).find(words), std::string::npos) << tuttiGetLastError(comm);
  });
}

// The list is an argument and no configuration: the buffers are where the program says.
TEST(Environment, DoesNotMoveTheDevicesOfInitAll) {
  const Settings settings({Setting{"TUTTI_DEVICE", "cuda:4711"}});
  const int device = -1;
  tuttiComm_t comm = nullptr;
  CHECK_TUTTI(tuttiCommInitAll(&comm, 1, &device));
  int where = 0;
  CHECK_TUTTI(tuttiCommDevice(comm, &where));
  EXPECT_EQ(where, -1);
  CHECK_TUTTI(tuttiCommDestroy(comm));
}

TEST(Environment, AnIdExpiresAndTheErrorSaysSo) {
  tuttiUniqueId id;
  {
    const Settings settings({Setting{"TUTTI_JOIN_TIMEOUT_MS", "50"}});
    CHECK_TUTTI(tuttiGetUniqueId(&id));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  tuttiConfig_t config = testConfig();
  config.joinTimeoutMs = 500;
  tuttiComm_t comm = nullptr;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 2, id, 1, &config), tuttiTimeout);
  const std::string text = tuttiGetLastError(nullptr);
  for (const char* part : {"unique id", "has expired", "TUTTI_JOIN_TIMEOUT_MS"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

size_t countOf(const std::string& part, const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string hexOf(const tuttiUniqueId& id) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : id.internal) {
    const auto byte = static_cast<unsigned char>(c);
    hex += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return hex;
}

// Of its own process, which ends with it, with a setting in its environment that it alone has.
TEST(ToldByAProcess, DISABLED_RankThatCannotBegin) {
  tuttiComm_t comm = nullptr;
  EXPECT_EQ(tuttiCommInitEnv(&comm, nullptr), tuttiInvalidArgument);
  EXPECT_EQ(std::string(tuttiGetLastError(nullptr)).find("TUTTI_"), 0u) << tuttiGetLastError(nullptr);
  std::quick_exit(HasFailure() ? 1 : 0);  // at once: nothing joins the thread of the root, as sanitizers see in _exit
}

// `setting`: as it is in that rank's environment. What is wrong with it begins with its name.
void expectToldOf(int rank, const std::string& setting) {
  const std::string text = tuttiGetLastError(nullptr);
  const size_t equals = setting.find('=');
  const std::string who = "rank " + std::to_string(rank) + " could not join: " + setting.substr(0, equals);
  for (const std::string& part : {who, setting.substr(equals + 1)})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

// What the ranks agree on, and what a rank calls the others over.
const std::string kCannotBegin[] = {"TUTTI_ALGO=spiral", "TUTTI_PORT_RANGE=foo", "TUTTI_SOCKET_FAMILY=5",
                                    "TUTTI_UNIX_SOCKETS=some"};

void hearThatRankTwoCannotBegin(const tuttiUniqueId& id, int rank, const std::string& setting) {
  const tuttiConfig_t config = testConfig();
  tuttiComm_t comm = nullptr;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 3, id, rank, &config), tuttiRemoteError);
  expectToldOf(2, setting);
}

// The process of rank 0 may end with what that rank hears, and the root is there: so it hears it last, where the others
// come within the second that it waits for them.
void expectAllToldOf(const std::string& setting) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kApart(100), kInTime(900);
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  const auto begun = Clock::now();
  const pid_t other =
      tutti::emulation::startOtherProcess("ToldByAProcess.DISABLED_RankThatCannotBegin",
                                          {"TUTTI_RANK=2", "TUTTI_SIZE=3", setting, "TUTTI_ID=" + hexOf(id)});
  std::atomic<bool> over = false;
  std::thread first([&] {
    hearThatRankTwoCannotBegin(id, 0, setting);
    over = true;
  });
  EXPECT_EQ(tutti::emulation::statusOf(other), 0);
  std::this_thread::sleep_for(kApart);
  const bool wasEarly = over, inTime = Clock::now() - begun < kInTime;
  EXPECT_FALSE(wasEarly && inTime);
  if (inTime) hearThatRankTwoCannotBegin(id, 1, setting);
  first.join();
}

TEST(Environment, ASettingThatOneRankCannotHaveIsToldToAll) {
  for (const std::string& setting : kCannotBegin) expectAllToldOf(setting);
}

TEST(Environment, ARankThatCannotBeginIsHeardByThoseWhoEncrypt) {
  const Settings encrypted({Setting{"TUTTI_ENCRYPT", "1"}});
  expectAllToldOf(kCannotBegin[0]);
}

// What is made of a communicator looks again: nobody waits for a rank whose settings have become wrong.
TEST(Environment, ASettingThatHasBecomeWrongEndsWhatIsMadeOfACommunicator) {
  for (const bool splits : {true, false}) {
    std::atomic<int> made{0};
    std::optional<Settings> wrong;
    withCommunicators(2, testConfig(), [&](tuttiComm_t comm, int rank) {
      ++made;
      while (made < 2) std::this_thread::yield();
      if (rank == 0) wrong.emplace(std::vector<Setting>{{"TUTTI_PORT_RANGE", "foo"}});
      if (rank == 0) ++made;
      while (made < 3) std::this_thread::yield();
      tuttiComm_t child = nullptr;
      const tuttiResult_t result =
          splits ? tuttiCommSplit(comm, 0, 0, &child, nullptr) : tuttiCommDuplicate(comm, &child, nullptr);
      EXPECT_TRUE(result == tuttiInvalidArgument || result == tuttiRemoteError) << result;  // the other one was first
      EXPECT_EQ(child, nullptr);
      EXPECT_NE(std::string(tuttiGetLastError(comm)).find("TUTTI_PORT_RANGE=foo"), std::string::npos)
          << tuttiGetLastError(comm);
    });
  }
}

void hearThatSizesDiffer(const tuttiUniqueId& id, int rank, int size) {
  const tuttiConfig_t config = testConfig();
  tuttiComm_t comm = nullptr;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, size, id, rank, &config), tuttiInvalidUsage);
  const std::string text = tuttiGetLastError(nullptr);
  EXPECT_NE(text.find("the ranks disagree on the size of the job"), std::string::npos) << text;
}

// As many have heard as the first one said that there are, and one more comes.
TEST(Environment, SizesThatDifferAreToldToThoseWhoComeLater) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kFirst(200), kApart(50), kInTime(900);
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  std::atomic<bool> over = false;
  std::thread first([&] {
    hearThatSizesDiffer(id, 0, 2);
    over = true;
  });
  std::this_thread::sleep_for(kFirst);  // so that it is the first
  const auto begun = Clock::now();
  hearThatSizesDiffer(id, 1, 3);
  std::this_thread::sleep_for(kApart);
  const bool wasEarly = over, inTime = Clock::now() - begun < kInTime;
  EXPECT_FALSE(wasEarly && inTime);
  if (inTime) hearThatSizesDiffer(id, 2, 3);
  first.join();
}

// Rank 0 itself, with which the root goes.
TEST(Environment, ASettingThatRank0CannotHaveIsToldToAll) {
  for (const std::string& setting : kCannotBegin) {
    const Settings meeting({{"TUTTI_RANK", "1"},
                            {"TUTTI_SIZE", "2"},
                            {"TUTTI_ROOT", "localhost:4000"},
                            {"TUTTI_JOB", "cannot begin " + setting + std::to_string(::getpid())}});
    std::thread second([&] {
      const tuttiConfig_t config = testConfig();
      tuttiComm_t comm = nullptr;
      EXPECT_EQ(tuttiCommInitEnv(&comm, &config), tuttiRemoteError);
      expectToldOf(0, setting);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it looks for the root already
    const pid_t first =
        tutti::emulation::startOtherProcess("ToldByAProcess.DISABLED_RankThatCannotBegin", {"TUTTI_RANK=0", setting});
    EXPECT_EQ(tutti::emulation::statusOf(first), 0);
    second.join();
  }
}

// A rank of its own process and, by TUTTI_HOST_ID, of its own host.
TEST(ToldByAProcess, DISABLED_Rank) {
  const char* const rank = std::getenv("TUTTI_RANK");
  if (rank == nullptr) GTEST_SKIP() << "runs only as a process of another test";
  ::testing::internal::CaptureStderr();
  {
    tuttiConfig_t config = testConfig();
    config.algorithm = "ring";
    config.encrypt = 1;
    tuttiComm_t comm = nullptr, child = nullptr;
    CHECK_TUTTI(tuttiCommInitEnv(&comm, &config));
    EXPECT_EQ(algorithmOf(comm), "tree");
    CHECK_TUTTI(tuttiCommSplit(comm, 0, 0, &child, nullptr));
    EXPECT_EQ(algorithmOf(child), "tree");
    CHECK_TUTTI(tuttiCommDestroy(child));
    tuttiConfig_t named = TUTTI_CONFIG_INITIALIZER;  // inherits what was overridden, and is told of it no more
    named.name = "named";
    CHECK_TUTTI(tuttiCommSplit(comm, 0, 0, &child, &named));
    CHECK_TUTTI(tuttiCommDestroy(child));
    CHECK_TUTTI(tuttiCommDestroy(comm));
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  const bool first = rank == std::string("0");
  EXPECT_EQ(countOf("info: overridden: config.algorithm=ring by TUTTI_ALGO=tree", log), 1u) << log;
  EXPECT_EQ(countOf("warning: overridden: config.encrypt=1 by TUTTI_ENCRYPT=0", log), first ? 1u : 0u) << log;
  EXPECT_EQ(countOf("set TUTTI_TRANSPORT=^shm for NCCL_SHM_DISABLE", log), first ? 1u : 0u) << log;
  // A table for the communicator and one for each of its children, on rank 0.
  for (const char* part : {": 2 ranks on 2 hosts; rank 0 (host ", "speaks for all\n", "; 1 process, ", "addresses",
                           "in host memory", "tcp (not p2p: different hosts; not shm: different hosts; not verbs: ",
                           "  all-reduce", ": tree\n", "  all-to-all", "\n    overridden "})
    EXPECT_EQ(countOf(part, log) >= 2, first) << part << "\n" << log;
  EXPECT_EQ(countOf("speaks for all", log), first ? 3u : 0u) << log;
}

TEST(Told, OnceForEachCommunicatorByRankZeroOfTwoHosts) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  std::vector<pid_t> processes;
  for (const std::string rank : {"0", "1"})
    processes.push_back(tutti::emulation::startOtherProcess(
        "ToldByAProcess.DISABLED_Rank",
        {"TUTTI_RANK=" + rank, "TUTTI_SIZE=2", "TUTTI_ID=" + hexOf(id), "TUTTI_HOST_ID=n" + rank, "TUTTI_DEBUG=Info",
         "TUTTI_ALGO=tree", "TUTTI_ENCRYPT=0", "NCCL_SHM_DISABLE=1"}));
  for (const pid_t process : processes) EXPECT_EQ(tutti::emulation::statusOf(process), 0);
}

// Two communicators, one after the other, and how often what TUTTI_TEST_WANTED says is told.
TEST(ToldByAProcess, DISABLED_Alone) {
  const char* const wanted = std::getenv("TUTTI_TEST_WANTED");
  if (wanted == nullptr) GTEST_SKIP() << "runs only as a process of another test";
  ::testing::internal::CaptureStderr();
  for (int round = 0; round < 2; ++round) {
    tuttiComm_t comms[2] = {};
    CHECK_TUTTI(tuttiCommInitAll(comms, 2, nullptr));
    for (const tuttiComm_t comm : comms) CHECK_TUTTI(tuttiCommDestroy(comm));
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(countOf(wanted, log), static_cast<size_t>(std::atoi(std::getenv("TUTTI_TEST_TIMES")))) << log;
  EXPECT_EQ(countOf("\n", log), static_cast<size_t>(std::atoi(std::getenv("TUTTI_TEST_LINES")))) << log;
}

void expectTold(const std::string& wanted, int times, int lines, std::vector<std::string> settings) {
  settings.push_back("TUTTI_TEST_WANTED=" + wanted);
  settings.push_back("TUTTI_TEST_TIMES=" + std::to_string(times));
  settings.push_back("TUTTI_TEST_LINES=" + std::to_string(lines));
  EXPECT_EQ(tutti::emulation::statusOfOtherProcess("ToldByAProcess.DISABLED_Alone", settings), 0) << wanted;
}

TEST(Told, NothingWithoutBeingAsked) { expectTold("tutti", 0, 0, {}); }

TEST(Told, TheVersionAloneAndOnce) {
  expectTold("tutti version: tutti " + std::to_string(TUTTI_MAJOR) + "." + std::to_string(TUTTI_MINOR), 1, 1,
             {"TUTTI_DEBUG=VERSION"});
}

TEST(Told, OneHintForWhoKnowsNamesOfNccl) {
  expectTold("set TUTTI_DEBUG for NCCL_DEBUG", 1, 1, {"NCCL_DEBUG=INFO"});
  expectTold("setting TUTTI_DEBUG, also to its default warn, leaves this line out", 1, 1, {"NCCL_ALGO=Ring"});
  expectTold("NCCL", 0, 0, {"NCCL_ALGO=Ring", "TUTTI_DEBUG=warn"});
}

}  // namespace
