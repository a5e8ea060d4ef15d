// Processes that end without tuttiCommDestroy. One that ends normally, whatever its exit status is, has left in good
// order: who needs it no more hears of nothing, who waits for it or begins what needs it is told how it left. One that
// ends in another way has died.
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "faults/support/operation.h"
#include "faults/support/options.h"
#include "faults/support/process.h"

namespace {

using namespace tutti::faults;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kUsage =
    R"(usage: tutti_leaving [--transports LIST] [--short]
Three processes are ranks. One ends without destroying its communicator, in each way, in each state of it; looks at what
the others are told, and at how long its end takes.
  --transports  of shm,tcp (both)
  --short       the form that the tests use: each rank ends in each way, and each state is left by each rank, once)";

constexpr int kRanks = 3;
constexpr int kStatus = 5, kAtOnce = 4;  // of those that exit with one, of those that end without more ado

seconds limit() { return seconds(30 * static_cast<int64_t>(patience())); }

// ---- Ranks
// -----------------------------------------------------------------------------------------------------------

tuttiResult_t addUp(tuttiComm_t comm, tuttiStream_t stream) {
  static thread_local std::array<float, 1> value;
  return tuttiAllReduce(value.data(), value.data(), 1, tuttiFloat32, tuttiSum, comm, stream);
}

// A message from one rank to another, which is also what joins all of them two by two need no third for.
tuttiResult_t pass(tuttiComm_t comm, int rank, int from, int to) {
  float value = 0;
  if (rank == from) return tuttiSend(&value, 1, tuttiFloat32, to, comm, nullptr);
  return rank == to ? tuttiRecv(&value, 1, tuttiFloat32, from, comm, nullptr) : tuttiSuccess;
}

template <class Body>
void leaveRunning(Body body) {
  std::thread(body).detach();
  std::this_thread::sleep_for(milliseconds(30));
}

tuttiStream_t newStream() {
  tuttiStream_t stream = nullptr;
  tuttiStreamCreate(&stream, 0);
  return stream;
}

// What the rank that ends is at then: what all have done, and what it does alone after that.
struct State {
  const char* name;
  void (*together)(tuttiComm_t comm);
  void (*alone)(tuttiComm_t comm);
  bool calls = false;     // it is in the call that the others may make
  bool isInside = false;  // some thread of it is, or may be, in a call
};
constexpr auto kNothing = [](auto...) {};
constexpr const char* kQueues = "waiting on a stream";

float lastWords = 7;
constexpr State kStates[] = {
    {"idle", kNothing, kNothing},
    {"after a call", [](tuttiComm_t comm) { addUp(comm, nullptr); }, kNothing},
    {"with a split",
     [](tuttiComm_t comm) {
       tuttiComm_t child = nullptr;
       tuttiCommSplit(comm, 0, 0, &child, nullptr);
       addUp(child, nullptr);
     },
     kNothing},
    {"with a call on a stream that all have made", [](tuttiComm_t comm) { addUp(comm, newStream()); }, kNothing},
    {kQueues, kNothing, [](tuttiComm_t comm) { addUp(comm, newStream()); }, true, true},
    {"waiting on a thread", kNothing, [](tuttiComm_t comm) { leaveRunning([comm] { addUp(comm, nullptr); }); }, true,
     true},
    {"registering on a thread", kNothing,
     [](tuttiComm_t comm) {
       leaveRunning([comm] {
         for (void* handle = nullptr;
              tuttiCommRegister(comm, &lastWords, sizeof lastWords, &handle, 0) == tuttiSuccess;)
           tuttiCommDeregister(comm, handle);
       });
     },
     false, true},
    {"joining another", kNothing,
     [](tuttiComm_t) {
       tuttiUniqueId id;
       tuttiGetUniqueId(&id);
       tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
       config.nonBlocking = 1;
       tuttiComm_t joining = nullptr;
       tuttiCommInitRankConfig(&joining, 2, id, 0, &config);
     }},
};

// An object that makes calls when it goes, before the library's part of the end.
struct Late {
  ~Late() {
    tuttiResult_t state = tuttiSuccess;
    if (comm != nullptr && tuttiCommGetAsyncError(comm, &state) != tuttiSuccess) ::_exit(96);
    if (comm != nullptr && state != tuttiSuccess) ::_exit(97);
  }
  tuttiComm_t comm = nullptr;
} late;

struct Ending {
  const char* name;
  int status;  // of the process; more than 128: a signal's number and 128
  void (*end)(tuttiComm_t comm);
  bool dies() const { return status >= 128 || status == kAtOnce; }
};

constexpr const char *kDestroys = "destroys it while it ends", *kLooks = "looks at it in a static object";
constexpr Ending kEndings[] = {
    {"returns", 0, kNothing},
    {"exits with a status", kStatus, [](tuttiComm_t) { std::exit(kStatus); }},
    {"exits on another thread", 0,
     [](tuttiComm_t) {
       std::thread([] { std::exit(0); }).detach();
       for (;;) ::pause();
     }},
    {kLooks, 0, [](tuttiComm_t comm) { late.comm = comm; }},
    {kDestroys, 0,
     [](tuttiComm_t comm) {
       static tuttiComm_t mine = comm;
       std::atexit([] {
         if (tuttiCommDestroy(mine) != tuttiSuccess) ::_exit(98);
       });
     }},
    {"is killed", 128 + SIGKILL, [](tuttiComm_t) { ::raise(SIGKILL); }},
    {"aborts", 128 + SIGABRT,
     [](tuttiComm_t) {
       const rlimit noCore{0, 0};
       ::setrlimit(RLIMIT_CORE, &noCore);
       std::abort();
     }},
    {"ends by _exit", kAtOnce, [](tuttiComm_t) { ::syscall(SYS_exit_group, kAtOnce); }},
    {"ends by quick_exit", kAtOnce, [](tuttiComm_t) { std::quick_exit(kAtOnce); }},
};

// What the others do when the rank has ended.
enum class After { kWithoutIt, kNeedIt, kWaitAlready, kEndToo, kSplit, kSplitAlready };
constexpr const char* kAfters[] = {"others go on without it",    "others begin what needs it",
                                   "others wait for it already", "others end as well",
                                   "others begin a split",       "others are in a split already"};
bool waitsAlready(After after) { return after == After::kWaitAlready || after == After::kSplitAlready; }
bool splits(After after) { return after == After::kSplit || after == After::kSplitAlready; }

std::string outcome(tuttiComm_t comm, tuttiResult_t result) {
  tuttiResult_t state = tuttiSuccess;
  tuttiCommGetAsyncError(comm, &state);
  return fmt::format("result {} state {} {}", static_cast<int>(result), static_cast<int>(state),
                     result == tuttiSuccess ? "" : tuttiGetLastError(comm));
}

// The two others, whose places in the tree depend on who has left.
tuttiResult_t goOnWithout(tuttiComm_t comm, int rank, int leaver) {
  const int first = leaver == 0 ? 1 : 0, second = leaver == 2 ? 1 : 2;
  for (int i = 0; i < 100; ++i) {
    if (const auto failed = pass(comm, rank, first, second)) return failed;
    if (const auto failed = pass(comm, rank, second, first)) return failed;
  }
  return tuttiSuccess;
}

tuttiResult_t split(tuttiComm_t comm) {
  tuttiComm_t child = nullptr;
  return tuttiCommSplit(comm, 0, 0, &child, nullptr);
}

tuttiResult_t goOn(tuttiComm_t comm, int rank, int leaver, After after) {
  if (after == After::kWithoutIt) return goOnWithout(comm, rank, leaver);
  return splits(after) ? split(comm) : addUp(comm, nullptr);
}

int serve(const Wire& wire, tuttiComm_t comm, int rank, int leaver, After after) {
  wire.send("ready");
  if (waitsAlready(after)) {
    wire.send(outcome(comm, goOn(comm, rank, leaver, after)));
  } else {
    if (wire.receive(limit()) != "go on") return 2;
    if (after == After::kEndToo) return 0;
    wire.send(outcome(comm, goOn(comm, rank, leaver, after)));
  }
  if (wire.receive(limit()) != "end") return 2;
  return tuttiCommDestroy(comm) == tuttiSuccess ? 0 : 3;
}

// rank, leaver, state, ending, after, transports
int runRank(char** argv) {
  const Wire wire = wireToHarness();
  const int rank = std::atoi(argv[1]), leaver = std::atoi(argv[2]);
  const State& state = kStates[std::atoi(argv[3])];
  tuttiUniqueId id;
  if (rank == 0) {
    if (tuttiGetUniqueId(&id) != tuttiSuccess) return 1;
    wire.send("id " + encodeId(id));
  }
  id = decodeId(wire.receive(limit()).substr(3));
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.transports = argv[6];
  tuttiComm_t comm = nullptr;
  if (tuttiCommInitRankConfig(&comm, kRanks, id, rank, &config) != tuttiSuccess) return 1;
  // So that what they do without the one that ends needs nothing new.
  if (goOnWithout(comm, rank, leaver) != tuttiSuccess) return 1;
  state.together(comm);
  if (rank != leaver) return serve(wire, comm, rank, leaver, static_cast<After>(std::atoi(argv[5])));
  state.alone(comm);
  wire.send("ready");
  if (wire.receive(limit()) != "end") return 2;
  kEndings[std::atoi(argv[4])].end(comm);
  return 0;
}

// ---- The harness
// -----------------------------------------------------------------------------------------------------

class Case {
 public:
  Case(int leaver, size_t state, size_t ending, After after, const std::string& transports)
      : leaver_(leaver), state_(kStates[state]), ending_(kEndings[ending]), after_(after), transports_(transports) {
    for (int rank = 0; rank < kRanks; ++rank)
      ranks_.emplace_back(
          std::vector<std::string>{std::to_string(rank), std::to_string(leaver), std::to_string(state),
                                   std::to_string(ending), std::to_string(static_cast<int>(after)), transports},
          std::vector<std::string>{"TUTTI_DUMP_DIR=" + records_.path()});
  }

  // Says what went wrong, or nothing.
  std::string run() {
    begin();
    if (!faults_.empty()) return faults_;
    if (waitsAlready(after_)) std::this_thread::sleep_for(milliseconds(50));
    child(leaver_).wire().send("end");
    // Rank 0, above all others in the tree, stays until they are done, or for ten seconds.
    if (leaver_ != 0 || ending_.dies()) expectEnd(leaver_, ending_.status);
    if (!waitsAlready(after_)) tellOthers("go on");
    if (after_ != After::kEndToo) {
      for (int rank = 0; rank < kRanks; ++rank)
        if (rank != leaver_) judge(rank, child(rank).wire().receive(limit()));
      tellOthers("end");
    }
    for (int rank = 0; rank < kRanks; ++rank) expectEnd(rank, rank == leaver_ ? ending_.status : 0);
    if (!hears() && !records_.left().empty()) fault("a record was written: " + records_.left().front());
    return faults_;
  }
  std::string describe() const {
    return fmt::format("over {}, rank {}, {}, {}; {}", transports_, leaver_, state_.name, ending_.name,
                       kAfters[static_cast<int>(after_)]);
  }

 private:
  Child& child(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  void fault(const std::string& text) { faults_ += "  " + text + "\n"; }
  // Whether anybody is to hear of an error.
  bool hears() const { return ending_.dies() || (after_ != After::kWithoutIt && after_ != After::kEndToo); }

  void begin() {
    const std::string id = child(0).wire().receive(limit());
    for (const Child& one : ranks_) one.wire().send(id);
    for (int rank = 0; rank < kRanks; ++rank)
      if (const auto text = child(rank).wire().receive(limit()); text != "ready")
        fault(fmt::format("rank {} does not get ready: {}", rank, text));
  }
  void tellOthers(const char* what) {
    for (int rank = 0; rank < kRanks; ++rank)
      if (rank != leaver_) child(rank).wire().send(what);
  }
  void expectEnd(int rank, int wanted) {
    const auto status = child(rank).awaitEnd(limit());
    if (!status) return fault(fmt::format("rank {} HANGS at its end", rank));
    if (*status != wanted) fault(fmt::format("rank {} ended with {}, and not {}", rank, *status, wanted));
  }

  void judge(int rank, const std::string& text) {
    if (text.empty()) return fault(fmt::format("rank {} HANGS", rank));
    if (!hears()) {
      if (text != "result 0 state 0 ") fault(fmt::format("rank {} needs nobody, and got {}", rank, text));
      return;
    }
    // Who goes on without one that died may be done before it hears of that, and who makes the call that it is in may
    // meet it there.
    if ((after_ == After::kWithoutIt || (state_.calls && !splits(after_))) && text.starts_with("result 0")) return;
    const std::string name = fmt::format("rank {} (host ", leaver_), pid = fmt::format("pid {})", child(leaver_).pid());
    const std::string how = ending_.dies() ? " left: "
                            : ending_.name == kDestroys
                                ? splits(after_) ? " left" : " has left"
                                : " left without destroying the communicator (its process ended)";
    for (const std::string& wanted : {std::string("result 6 state 6 "), name, pid + how})
      if (text.find(wanted) == std::string::npos) fault(fmt::format("rank {}: no \"{}\" in: {}", rank, wanted, text));
  }

  int leaver_;
  const State& state_;
  const Ending& ending_;
  After after_;
  std::string transports_, faults_;
  Scratch records_;
  std::vector<Child> ranks_;
};

int tally(Case&& one) {
  const std::string faults = one.run();
  if (!faults.empty()) fmt::print("FAILED: {}\n{}", one.describe(), faults);
  std::fflush(stdout);
  return faults.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (std::string(argv[0]) == "rank") return runRank(argv);
  const Options options(argc, argv, kUsage);
  int faulty = 0, cases = 0;
  size_t turn = 0;
  for (const std::string& transports : itemsOf(options.text("transports", "shm,tcp")))
    for (int leaver = 0; leaver < kRanks; ++leaver)
      for (size_t state = 0; state < std::size(kStates); ++state)
        for (size_t ending = 0; ending < std::size(kEndings); ++ending)
          for (const After after : {After::kWithoutIt, After::kNeedIt, After::kWaitAlready, After::kEndToo,
                                    After::kSplit, After::kSplitAlready}) {
            // A few of all: neighbours in this order differ in everything.
            if (options.has("short") && turn++ % 29 != 0) continue;
            if (kEndings[ending].name == kDestroys && kStates[state].isInside) continue;
            if (kStates[state].calls && splits(after)) continue;  // calls that do not match
            // What is queued fails before static objects go, and its communicator with it.
            if (kStates[state].name == kQueues && kEndings[ending].name == kLooks) continue;
            faulty += tally(Case(leaver, state, ending, after, transports));
            ++cases;
          }
  fmt::print("{} cases, {} faulty\n", cases, faulty);
  return faulty == 0 ? 0 : 1;
}
