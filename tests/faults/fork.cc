// A child made by fork while a communicator exists: it cannot use it, its life and its end mean nothing to the others,
// and when its parent is killed they know at once, although the child lives on.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <sstream>

#include "faults/support/operation.h"
#include "faults/support/options.h"
#include "faults/support/process.h"

namespace {

using namespace tutti::faults;
using std::chrono::seconds;

constexpr const char* kUsage =
    R"(usage: tutti_fork [--transports LIST] [--short]
Two processes are ranks; the second one forks. Looks at what its child can do, and at what the first one is told.
  --transports  of shm,tcp (both)
  --short       the form that the tests use: the same)";

constexpr int kRanks = 2;

seconds limit() { return seconds(30 * static_cast<int64_t>(patience())); }

bool allReduceIsRight(tuttiComm_t comm, int rank) {
  Operation operation;
  operation.count = 5000;
  Part part(operation, rank, kRanks);
  return part.issue(comm, nullptr) == tuttiSuccess && part.check().empty();
}

// In the child: "" when every call gets tuttiInvalidUsage and says why.
std::string tryParents(tuttiComm_t comm, tuttiStream_t stream) {
  float value = 0;
  int number = 0;
  tuttiComm_t made = nullptr;
  tuttiResult_t state = tuttiSuccess;
  const std::pair<const char*, std::function<tuttiResult_t()>> calls[] = {
      {"all-reduce", [&] { return tuttiAllReduce(&value, &value, 1, tuttiFloat32, tuttiSum, comm, nullptr); }},
      {"barrier", [&] { return tuttiBarrier(comm, nullptr); }},
      {"receive", [&] { return tuttiRecv(&value, 1, tuttiFloat32, 0, comm, nullptr); }},
      {"split", [&] { return tuttiCommSplit(comm, 0, 0, &made, nullptr); }},
      {"shrink", [&] { return tuttiCommShrink(comm, nullptr, 0, &made, nullptr, 0); }},
      {"count", [&] { return tuttiCommCount(comm, &number); }},
      {"async error", [&] { return tuttiCommGetAsyncError(comm, &state); }},
      {"revoke", [&] { return tuttiCommRevoke(comm, 0); }},
      {"finalize", [&] { return tuttiCommFinalize(comm); }},
      {"abort", [&] { return tuttiCommAbort(comm); }},
      {"destroy", [&] { return tuttiCommDestroy(comm); }},
      {"stream", [&] { return tuttiStreamSynchronize(stream); }}};
  for (const auto& [name, call] : calls) {
    const tuttiResult_t result = call();
    const std::string text = tuttiGetLastError(nullptr);
    if (result != tuttiInvalidUsage || text.find("fork") == std::string::npos)
      return fmt::format("{} in a forked child got \"{}\": {}", name, tuttiGetErrorString(result), text);
  }
  return "";
}

// A child that does `body` and exits with 0 when that returns nothing; with `lives` it then waits until it is killed.
pid_t forkChild(const std::function<std::string()>& body, bool lives) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  const std::string fault = body();
  if (!fault.empty()) fmt::print(stderr, "{}\n", fault);
  while (lives) ::pause();
  std::exit(!fault.empty());  // with all that a program does at its end
}

// What each rank does: says its steps to the harness, and is told when to go on.
//   ready      joined, and reduced once
//   child OK   rank 1: a child has tried everything and ended; both reduce again
//   held PID   rank 1: another child lives on
//   known NS CODE TEXT   rank 0: its barrier ended
int runRank(char** argv) {
  const Wire wire = wireToHarness();
  const int rank = std::atoi(argv[1]);
  tuttiUniqueId id;
  if (rank == 0) {
    if (tuttiGetUniqueId(&id) != tuttiSuccess) return 1;
    wire.send("id " + encodeId(id));
  }
  id = decodeId(wire.receive(limit()).substr(3));
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.transports = argv[2];
  tuttiComm_t comm = nullptr;
  tuttiStream_t stream = nullptr;
  if (tuttiCommInitRankConfig(&comm, kRanks, id, rank, &config) != tuttiSuccess) return 1;
  if (tuttiStreamCreate(&stream, 0) != tuttiSuccess || !allReduceIsRight(comm, rank)) return 1;
  wire.send("ready");
  if (rank == 1) {
    int status = -1;
    ::waitpid(forkChild([&] { return tryParents(comm, stream); }, false), &status, 0);
    wire.send(fmt::format("child {}", status));
  }
  if (wire.receive(limit()) != "again" || !allReduceIsRight(comm, rank)) return 1;
  wire.send("right");
  if (rank == 1) {
    wire.send(fmt::format("held {}", forkChild([] { return std::string(); }, true)));
    ::pause();
  }
  float never = 0;
  const tuttiResult_t result = tuttiRecv(&never, 1, tuttiFloat32, 1, comm, nullptr);
  wire.send(fmt::format("known {} {} {}", now(), static_cast<int>(result), tuttiGetLastError(comm)));
  tuttiStreamDestroy(stream);
  return tuttiCommDestroy(comm) != tuttiSuccess;
}

// Says what went wrong, or nothing.
std::string runCase(const std::string& transports) {
  std::vector<Child> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.emplace_back(std::vector{std::to_string(rank), transports});
  const auto hear = [&](size_t rank) { return ranks[rank].wire().receive(limit()); };
  const std::string id = hear(0);
  for (const Child& rank : ranks) rank.wire().send(id);
  if (hear(0) != "ready" || hear(1) != "ready") return "the ranks do not join";
  if (const std::string child = hear(1); child != "child 0") return "a forked child: " + child;
  for (const Child& rank : ranks) rank.wire().send("again");
  if (hear(0) != "right" || hear(1) != "right") return "no right sums after a child has ended";
  const std::string held = hear(1);
  const pid_t grandchild = held.size() > 5 ? std::atoi(held.c_str() + 5) : 0;
  if (grandchild <= 0) return "no second child";
  const int64_t struck = now();
  ranks[1].signal(SIGKILL);
  const std::string known = hear(0);
  const bool lived = ::kill(grandchild, SIGKILL) == 0;
  std::istringstream in(known.size() > 6 ? known.substr(6) : "");
  int64_t when = 0;
  int code = 0;
  in >> when >> code;
  const double delay = static_cast<double>(when - struck) / 1e6;
  if (known.empty() || code != tuttiRemoteError ||
      known.find(fmt::format("pid {})", ranks[1].pid())) == std::string::npos)
    return "the parent's death: " + (known.empty() ? "HANGS" : known);
  if (!lived) return "the child did not outlive its parent";
  fmt::print("{}: the parent's death was known after {:.1f} ms, while its child lived{}\n", transports, delay,
             delay > 1000 ? "  !! later than 1 s" : "");
  return ranks[0].awaitEnd(limit()) == 0 ? "" : "the first rank did not end well";
}

}  // namespace

int main(int argc, char** argv) {
  if (std::strcmp(argv[0], "rank") == 0) return argc < 3 ? 2 : runRank(argv);
  const Options options(argc, argv, kUsage);
  int faulty = 0;
  for (const auto& transports : itemsOf(options.text("transports", "shm,tcp")))
    if (const std::string fault = runCase(transports); !fault.empty()) {
      fmt::print("FAILED {}: {}\n", transports, fault);
      ++faulty;
    }
  return faulty;
}
