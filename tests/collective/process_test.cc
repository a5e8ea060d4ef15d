// What a job does to its process, and its process to it: records, signals, forks, threads that are cancelled.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emulation/other_process.h"
#include "support/api_ranks.h"
#include "support/other_user.h"
#include "support/texts.h"
#include "support/variables.h"

namespace tutti::test {
namespace {

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

// Whoever may write to a folder of devices would lose one.
TEST(Trouble, ADumpReplacesNothingButFiles) {
  namespace fs = std::filesystem;
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    const fs::path folder = fs::path(::testing::TempDir()) / ("tutti-dumps-" + std::to_string(::getpid()));
    fs::create_directory(folder);
    const fs::path fifo = folder / "fifo", link = folder / "link", file = folder / "file", device = folder / "null";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    std::ofstream(file) << "an earlier record";
    fs::create_symlink(file, link);
    std::vector<fs::path> others = {fifo, link, folder};
    // One like /dev/null, which the machine needs; only root may make any.
    if (::mknod(device.c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0) others.push_back(device);
    for (const fs::path& path : others) {
      const auto before = fs::symlink_status(path).type();
      EXPECT_EQ(tuttiCommDump(comm, path.c_str()), tuttiInvalidArgument) << path;
      expectText(lastText(comm), {path.string(), "no regular file"});
      EXPECT_EQ(fs::symlink_status(path).type(), before) << path;
    }
    EXPECT_EQ(fs::file_size(file), 17U) << "nothing goes through a link";
    CHECK_TUTTI(tuttiCommDump(comm, file.c_str()));
    EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), std::ssize(others)) << "a draft was left";
    fs::remove_all(folder);
  });
}

// In a folder that anybody may write to: a link and a file that another user has laid where the record goes.
TEST(Trouble, ADumpGoesThroughNothingOfAnotherUsers) {
  if (!mayBeAnotherUser()) GTEST_SKIP() << "needs root";
  namespace fs = std::filesystem;
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    const fs::path folder = fs::path(::testing::TempDir()) / ("tutti-anybodys-" + std::to_string(::getpid()));
    fs::create_directory(folder);
    ASSERT_EQ(::chmod(folder.c_str(), 01777), 0);
    const fs::path mine = folder / "mine", link = folder / "link", theirs = folder / "theirs";
    std::ofstream(mine) << "what must stay";
    ASSERT_EQ(statusOf(asNobody([&] {
                const int fd = ::open(theirs.c_str(), O_WRONLY | O_CREAT, 0666);
                return ::fchmod(fd, 0666) | ::symlink(mine.c_str(), link.c_str());
              })),
              0);
    EXPECT_EQ(tuttiCommDump(comm, link.c_str()), tuttiInvalidArgument);
    EXPECT_EQ(fs::file_size(mine), 14U);
    CHECK_TUTTI(tuttiCommDump(comm, theirs.c_str()));  // root may replace it; others get an error
    struct stat record {};
    ASSERT_EQ(::stat(theirs.c_str(), &record), 0);
    EXPECT_EQ(record.st_uid, 0U);
    EXPECT_EQ(record.st_mode & 07777, 0600U);
    fs::remove_all(folder);
  });
}

// The limit on files ends whoever passes it with a signal, unless that is held back.
TEST(Trouble, ADumpThatGrowsTooLongIsAnError) {
  namespace fs = std::filesystem;
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    const fs::path file = fs::path(::testing::TempDir()) / ("tutti-long-" + std::to_string(::getpid()));
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit little{100, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
    const tuttiResult_t result = tuttiCommDump(comm, file.c_str());
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(result, tuttiSystemError);
    expectText(lastText(comm), {file.string(), "File too large"});
    EXPECT_FALSE(fs::exists(file));
    sigset_t pending;
    ::sigpending(&pending);
    EXPECT_FALSE(::sigismember(&pending, SIGXFSZ)) << "it would come later";
    CHECK_TUTTI(tuttiCommDump(comm, file.c_str()));
    fs::remove(file);
  });
}

uint64_t heldSignals(const std::string& task) {
  std::ifstream status(task + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigBlk:")) return std::stoull(line.substr(7), nullptr, 16);
  return 0;
}

// A program's handlers would run there, and its sigwait() would miss what is sent to the process. In a process of its
// own: the writer of records, once it runs, runs for good.
TEST(Trouble, ThreadsOfTheLibraryTakeNoSignals) {
  EXPECT_EQ(emulation::statusOfOtherProcess("TroubleAlone.DISABLED_ThreadsTakeNoSignals", {}), 0);
}

TEST(TroubleAlone, DISABLED_ThreadsTakeNoSignals) {
  namespace fs = std::filesystem;
  const auto threads = [] {
    std::set<std::string> ids;
    for (const auto& entry : fs::directory_iterator("/proc/self/task")) ids.insert(entry.path());
    return ids;
  };
  const std::string folder = ::testing::TempDir();
  std::thread([] {}).join();  // a sanitizer makes a thread of its own beside the first
  const auto before = threads();
  tuttiComm_t comms[2] = {}, joining = nullptr;
  tuttiStream_t stream = nullptr;
  tuttiUniqueId id;
  const tuttiConfig_t config = inBackground();
  {
    const Settings records({Setting{"TUTTI_DUMP_DIR", folder}});
    CHECK_TUTTI(tuttiGetUniqueId(&id));
    // By threads that hold nothing back: whoever starts the writer while it does keeps the signal for itself.
    runRanks(2, [&](int r) { CHECK_TUTTI(tuttiCommInitRank(&comms[r], 2, id, r)); });
  }
  CHECK_TUTTI(tuttiStreamCreate(&stream, 0));
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  EXPECT_EQ(tuttiCommInitRankConfig(&joining, 2, id, 1, &config), tuttiInProgress);
  // A thread that begins or ends holds everything back for a moment, and those that only helped to join end by
  // themselves.
  // Of two communicators, a stream, the writer of records, a root, one that joins and its part of the tree. (A GPU's
  // attendant is made as these are: tools/check-layers sees to it.)
  constexpr size_t kOurs = 7;
  std::vector<uint64_t> masks;
  const auto takers = [&](int signal) {
    return std::ranges::count_if(masks, [signal](uint64_t held) { return !(held >> (signal - 1) & 1); });
  };
  const auto settled = [&] {
    masks.clear();
    for (const std::string& thread : threads())
      if (!before.contains(thread)) masks.push_back(heldSignals(thread));
    return masks.size() == kOurs &&
           std::ranges::none_of(masks, [](uint64_t held) { return held >> (SIGSEGV - 1) & 1; }) && takers(SIGUSR2) == 1;
  };
  for (int i = 0; i < 1000 && !settled(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(masks.size(), kOurs);
  for (const uint64_t held : masks) {
    for (const int signal : {SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGCHLD, SIGHUP})
      EXPECT_TRUE(held >> (signal - 1) & 1) << "signal " << signal;
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE}) EXPECT_FALSE(held >> (fault - 1) & 1) << "fault " << fault;
  }
  sigset_t mine;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  EXPECT_FALSE(::sigismember(&mine, SIGINT)) << "the caller's own mask is as it was";
  EXPECT_EQ(takers(SIGUSR2), 1) << "the writer of records takes its own signal, and no other thread does";
  CHECK_TUTTI(tuttiCommAbort(joining));
  CHECK_TUTTI(tuttiStreamDestroy(stream));
  runRanks(2, [&](int r) { CHECK_TUTTI(tuttiCommDestroy(comms[r])); });
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

// A call of a thread that is cancelled while it waits for another rank, which waits for `sent`.
struct CancelledCall {
  std::function<tuttiResult_t()> call;
  std::atomic<bool>& sent;
  std::atomic<int> result{-1};

  static void* body(void* given) {
    auto& mine = *static_cast<CancelledCall*>(given);
    mine.result = static_cast<int>(mine.call());
    for (;;) ::pause();  // a point to be cancelled at
  }

  void run() {
    pthread_t caller{};
    ASSERT_EQ(::pthread_create(&caller, nullptr, body, this), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // for it to get there
    EXPECT_EQ(::pthread_cancel(caller), 0);
    sent = true;
    sent.notify_all();
    void* end = nullptr;
    ASSERT_EQ(::pthread_join(caller, &end), 0);
    EXPECT_EQ(end, PTHREAD_CANCELED);
    EXPECT_EQ(result, int{tuttiSuccess});
  }
};

// Rank 1's is in a thread that is cancelled.
void callOnBoth(int rank, std::atomic<bool>& sent, std::function<tuttiResult_t()> call) {
  if (rank == 1) return CancelledCall{std::move(call), sent}.run();
  sent.wait(false);
  EXPECT_EQ(call(), tuttiSuccess) << lastText(nullptr);
}

// A thread that is cancelled in a call ends behind it, and not the process: also while it sleeps on its sockets, which
// is a point to be cancelled at. `before`: how often the ranks have made that call by then.
void cancelIn(const std::function<tuttiResult_t(tuttiComm_t)>& call, int before) {
  for (const char* transports : {"p2p", "tcp"}) {
    tuttiConfig_t config = testConfig();
    config.transports = transports;
    std::atomic<bool> sent{false};
    withCommunicators(2, config, [&](tuttiComm_t comm, int rank) {
      for (int i = 0; i < before; ++i) CHECK_TUTTI(call(comm));
      callOnBoth(rank, sent, [&] { return call(comm); });
    });
  }
}

TEST(Trouble, ACancelledThreadFinishesItsCall) {
  cancelIn([](tuttiComm_t comm) { return tuttiBarrier(comm, nullptr); }, 0);
}

// One that was made before with the same arguments goes another way.
TEST(Trouble, ACancelledThreadFinishesACallThatRepeats) {
  thread_local std::array<float, 2> mine{1, 1}, sum;
  const auto sums = [](tuttiComm_t comm) {
    return tuttiAllReduce(mine.data(), sum.data(), mine.size(), tuttiFloat32, tuttiSum, comm, nullptr);
  };
  cancelIn(sums, 4);
}

TEST(Trouble, ACancelledThreadFinishesItsJoin) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  const tuttiConfig_t config = testConfig();
  std::atomic<bool> sent{false};
  runRanks(2, [&](int rank) {
    tuttiComm_t comm = nullptr;
    callOnBoth(rank, sent, [&] { return tuttiCommInitRankConfig(&comm, 2, id, rank, &config); });
    CHECK_TUTTI(tuttiBarrier(comm, nullptr));
    CHECK_TUTTI(tuttiCommDestroy(comm));
  });
}

TEST(Trouble, ACancelledThreadFinishesItsSplit) {
  std::atomic<bool> sent{false};
  withCommunicators(2, testConfig(), [&sent](tuttiComm_t comm, int rank) {
    tuttiComm_t child = nullptr;
    callOnBoth(rank, sent, [&] { return tuttiCommSplit(comm, 0, rank, &child, nullptr); });
    CHECK_TUTTI(tuttiBarrier(child, nullptr));
    CHECK_TUTTI(tuttiCommDestroy(child));
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
}  // namespace tutti::test
