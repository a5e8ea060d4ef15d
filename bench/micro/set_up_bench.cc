// From nothing to the first all-reduce: processes of this host join one communicator and add up a message. A line for
// each number of ranks, milliseconds: how long it takes to start them all; and, since all of them went on from there
// together, when the last one has joined, is through its calls, and has left. Then the time that the processes took of
// all cores, their start and end included.
//
//   set_up_bench [--threads] [--bytes N] [--calls N] 16 64 256
//
// The environment says the rest (TUTTI_ALGO, TUTTI_TRANSPORT). With --threads the ranks are threads of one process.
#include <fmt/format.h>
#include <linux/futex.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "tutti/tutti.h"

namespace {

constexpr int kMostRanks = 1024;
constexpr const char* kRankOption = "--rank-of-the-bench";
constexpr int kSharedFd = 77;  // of what the processes share, in each of them

enum Mark { kStarted, kJoined, kFirstCall, kSecondCall, kLastCall, kLeft, kMarks };
constexpr const char* kNames[kMarks] = {"started", "joined", "first call", "second", "last", "left"};

using Clock = std::chrono::steady_clock;

struct Shared {
  tuttiUniqueId id;
  int ranks = 0;
  size_t bytes = 8;
  int calls = 10;
  Clock::time_point begun;
  std::atomic<int> present{0};
  Clock::time_point marks[kMostRanks][kMarks];
  char algorithm[128];
};

void require(tuttiResult_t result, const char* what) {
  if (result == tuttiSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, tuttiGetLastError(nullptr));
  std::_Exit(1);
}

// Until all are there. Shared memory, so no private futex: std::atomic's waits are for one process.
void meet(Shared& shared) {
  auto* const word = reinterpret_cast<int*>(&shared.present);
  const int now = shared.present.fetch_add(1) + 1;
  if (now == shared.ranks) ::syscall(SYS_futex, word, FUTEX_WAKE, kMostRanks, nullptr, nullptr, 0);
  for (int seen = now; seen < shared.ranks; seen = shared.present.load())
    ::syscall(SYS_futex, word, FUTEX_WAIT, seen, nullptr, nullptr, 0);
}

void play(Shared& shared, int rank) {
  const auto note = [&](Mark mark) { shared.marks[rank][mark] = Clock::now(); };
  std::vector<std::byte> in(shared.bytes), out(shared.bytes);
  note(kStarted);
  meet(shared);
  tuttiComm_t comm = nullptr;
  require(tuttiCommInitRank(&comm, shared.ranks, shared.id, rank), "join");
  note(kJoined);
  const auto allReduce = [&] {
    require(tuttiAllReduce(in.data(), out.data(), in.size(), tuttiUint8, tuttiSum, comm, nullptr), "all-reduce");
  };
  for (int call = 0; call < shared.calls; ++call) {
    allReduce();
    if (call < 2) note(call == 0 ? kFirstCall : kSecondCall);
  }
  note(kLastCall);
  tuttiCommStats_t stats{};
  stats.size = sizeof stats;
  require(tuttiCommGetStats(comm, &stats), "stats");
  if (rank == 0)
    std::snprintf(shared.algorithm, sizeof shared.algorithm, "%s, %s", stats.lastAlgorithm, stats.lastTransports);
  tuttiCommDestroy(comm);
  note(kLeft);
}

Shared& mapShared(int fd) {
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) std::perror("mmap"), std::exit(1);
  return *static_cast<Shared*>(memory);
}

void startProcesses(int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    std::string name = "set_up_bench", option = kRankOption, number = std::to_string(rank);
    char* const arguments[] = {name.data(), option.data(), number.data(), nullptr};
    pid_t pid = -1;
    if (::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments, environ) != 0)
      std::perror("posix_spawn"), std::exit(1);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    if (::wait(&status) < 0 || status != 0) std::fprintf(stderr, "a rank ended with %#x\n", status), std::exit(1);
  }
}

void startThreads(Shared& shared, int ranks) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&shared, rank] { play(shared, rank); });
  for (std::thread& thread : threads) thread.join();
}

// Milliseconds, of all cores together.
double processorTimeOfChildren() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  const auto ms = [](const timeval& time) { return double(time.tv_sec) * 1e3 + double(time.tv_usec) / 1e3; };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

void report(const Shared& shared, double before) {
  std::string line = fmt::format("{:>5}", shared.ranks);
  auto since = shared.begun;
  for (int mark = 0; mark < kMarks; ++mark) {
    auto last = since;
    for (int rank = 0; rank < shared.ranks; ++rank) last = std::max(last, shared.marks[rank][mark]);
    line += fmt::format("{:>12.0f}", std::chrono::duration<double, std::milli>(last - since).count());
    if (mark == kStarted) since = last;
  }
  line += fmt::format("{:>12.0f}", processorTimeOfChildren() - before);
  std::puts((line + "   " + shared.algorithm).c_str());
  std::fflush(stdout);
}

void measure(Shared& shared, int ranks, bool threads) {
  shared.ranks = ranks;
  shared.present = 0;
  require(tuttiGetUniqueId(&shared.id), "unique id");
  const double before = processorTimeOfChildren();
  shared.begun = Clock::now();
  threads ? startThreads(shared, ranks) : startProcesses(ranks);
  report(shared, before);
}

int numberIn(const char* text) {
  const std::string all = text;
  int number = -1;
  std::from_chars(all.data(), all.data() + all.size(), number);
  if (number < 0 || number > kMostRanks) std::fprintf(stderr, "%s: 1 to %d ranks\n", text, kMostRanks), std::exit(1);
  return number;
}

constexpr const char* kHelp =
    "set_up_bench [--threads] [--bytes N] [--calls N] RANKS...\n"
    "  --threads  the ranks are threads of one process, not processes\n"
    "  --bytes    of the message, 8 unless told\n"
    "  --calls    of each rank, 10 unless told\n";

void measureAll(Shared& shared, const std::vector<std::string>& arguments) {
  bool threads = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool last = i + 1 == arguments.size();
    if (arguments[i] == "--threads")
      threads = true;
    else if (arguments[i] == "--bytes" && !last)
      shared.bytes = std::strtoull(arguments[++i].c_str(), nullptr, 10);
    else if (arguments[i] == "--calls" && !last)
      shared.calls = numberIn(arguments[++i].c_str());
    else
      measure(shared, numberIn(arguments[i].c_str()), threads);
  }
}

void printHeader() {
  std::string header = "ranks";
  for (const char* name : kNames) header += fmt::format("{:>12}", name);
  std::puts((header + "   processor   algorithm, transport").c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 2 && arguments[0] == kRankOption) return play(mapShared(kSharedFd), numberIn(argv[2])), 0;
  if (arguments.empty() || arguments[0] == "--help") return std::fputs(kHelp, stdout), 0;
  const int fd = ::memfd_create("set-up", 0);
  if (::ftruncate(fd, sizeof(Shared)) != 0 || ::dup2(fd, kSharedFd) < 0) return std::perror("memfd"), 1;
  printHeader();
  measureAll(*new (&mapShared(kSharedFd)) Shared, arguments);
  return 0;
}
