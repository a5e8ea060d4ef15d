// Two ranks that use two communicators in different orders: each waits in a call on one for what the other would call
// next. Both have said so long before the deadline. It is a warning and not the calls' error, whatever the ranks are:
// another thread of either process may still make the call that is missing, as one does here, and then all is well.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "emulation/other_process.h"
#include "support/api_ranks.h"
#include "support/texts.h"

namespace {

using namespace tutti::test;

// What this process writes to its standard error, for as long as it lives.
class Log {
 public:
  Log() : file_(std::tmpfile(), std::fclose), before_(::dup(STDERR_FILENO)) {
    ::dup2(::fileno(file_.get()), STDERR_FILENO);
  }
  ~Log() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  std::string text() const {
    std::string all(1 << 16, '\0');
    const ssize_t length = ::pread(::fileno(file_.get()), all.data(), all.size(), 0);
    all.resize(length < 0 ? 0 : static_cast<size_t>(length));
    return all;
  }
  bool warns() const { return text().find("in the same order") != std::string::npos; }

 private:
  const std::unique_ptr<FILE, int (*)(FILE*)> file_;
  const int before_;
};

void expectBothCalls(const std::string& text) {
  expectText(text, {"rank 0 (", "rank 1 (", "waits in all-reduce #0 (int32, 1 element, sum) on communicator ",
                    "waits in broadcast #0 (int32, 1 element, root 0) on communicator "});
}

// Makes the one call, and the other when it has been said that somebody waits for that, or when it is its turn.
void cross(tuttiComm_t comm, int rank, const Log& log) {
  tuttiComm_t other = nullptr;
  CHECK_TUTTI(tuttiCommSplit(comm, 0, rank, &other, nullptr));
  int sum = 1, sent = rank;
  const auto reduce = [&] { return tuttiAllReduce(&sum, &sum, 1, tuttiInt32, tuttiSum, comm, nullptr); };
  const auto broadcast = [&] { return tuttiBroadcast(&sent, &sent, 1, tuttiInt32, 0, other, nullptr); };
  std::atomic<bool> over{false};
  std::thread helper([&] {
    while (!over && !log.warns()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(rank == 0 ? broadcast() : reduce(), tuttiSuccess) << lastText(rank == 0 ? other : comm);
  });
  EXPECT_EQ(rank == 0 ? reduce() : broadcast(), tuttiSuccess) << lastText(rank == 0 ? comm : other);
  over = true;
  helper.join();
  EXPECT_EQ(sum, 2);
  EXPECT_EQ(sent, 0);
  CHECK_TUTTI(tuttiCommDestroy(other));
}

TEST(Crossing, OfThreadsIsSaidWhileTheyWait) {
  const Log log;
  withCommunicators(2, testConfig(), [&](tuttiComm_t comm, int rank) { cross(comm, rank, log); });
  expectBothCalls(log.text());
}

// A rank of the next test, in a process of its own.
TEST(CrossingRank, DISABLED_One) {
  const Log log;
  const tuttiConfig_t config = testConfig();
  tuttiComm_t comm = nullptr;
  CHECK_TUTTI(tuttiCommInitEnv(&comm, &config));
  int rank = -1;
  CHECK_TUTTI(tuttiCommUserRank(comm, &rank));
  cross(comm, rank, log);
  CHECK_TUTTI(tuttiCommDestroy(comm));
  if (log.warns()) expectBothCalls(log.text());
}

// Nothing but a warning lets them go on; so one of them has had it.
TEST(Crossing, OfProcessesIsSaidWhileTheyWait) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  const std::string path = ::testing::TempDir() + "tutti-crossing-" + std::to_string(::getpid());
  {
    std::ofstream file(path);
    std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    for (const char byte : id.internal) {
      constexpr char kDigits[] = "0123456789abcdef";
      file << kDigits[static_cast<unsigned char>(byte) >> 4] << kDigits[byte & 15];
    }
  }
  pid_t ranks[2] = {};
  for (int rank = 0; rank < 2; ++rank)
    ranks[rank] = tutti::emulation::startOtherProcess(
        "CrossingRank.DISABLED_One",
        {"TUTTI_LAUNCHER=tutti", "TUTTI_RANK=" + std::to_string(rank), "TUTTI_SIZE=2", "TUTTI_ID_FILE=" + path});
  for (const pid_t rank : ranks) EXPECT_EQ(tutti::emulation::statusOf(rank), 0);
  std::remove(path.c_str());
}

}  // namespace
