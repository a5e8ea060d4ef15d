// The whole of a program: options, processes, threads, and each thread's walk through types, operators, roots and
// sizes.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "perf/collective.h"
#include "perf/environment.h"
#include "perf/failure.h"
#include "perf/join.h"
#include "perf/launch.h"
#include "perf/reporter.h"
#include "perf/signals.h"
#include "perf/thread.h"
#include "perf/worker.h"

namespace tutti::perf {
namespace {

std::string processorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

uint64_t residentBytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// A trivially copyable record as the bytes that Worker::gather carries, and back.
template <class Record>
std::string bytesOf(const Record& record) {
  return {reinterpret_cast<const char*>(&record), sizeof record};
}
template <class Record>
Record recordOf(const std::string& bytes) {
  Record record;
  std::memcpy(&record, bytes.data(), sizeof record);
  return record;
}

struct RankRecord {
  int rank, pid, device;
  char host[64], description[96], bus[16];
};

void put(char* field, size_t size, const std::string& text) { text.copy(field, size - 1); }

std::string describe(const Member& member, const std::string& processor) {
  RankRecord record{member.rank, static_cast<int>(getpid()), member.device, {}, {}, {}};
  gethostname(record.host, sizeof record.host - 1);
  const bool onGpu = member.device >= 0;
  const auto [name, bus] =
      onGpu ? device::identify(member.device) : device::Identity{"host memory, " + processor, "0000:00:00"};
  put(record.description, sizeof record.description, name);
  put(record.bus, sizeof record.bus, bus);
  return bytesOf(record);
}

std::vector<RankInfo> introduce(Worker& worker) {
  const std::string processor = processorName();
  std::vector<RankInfo> ranks;
  for (const std::string& bytes :
       worker.gather(sizeof(RankRecord), [&](const Member& member) { return describe(member, processor); })) {
    const auto record = recordOf<RankRecord>(bytes);
    ranks.push_back({record.rank, 0, record.pid, record.device, record.host, record.description, record.bus});
  }
  return ranks;
}

std::vector<MemoryInfo> memoryOf(Worker& worker) {
  const auto ofMember = [](const Member& member) {
    tuttiCommStats_t stats{};
    stats.size = sizeof stats;
    require(tuttiCommGetStats(member.comm, &stats), "tuttiCommGetStats", member.rank, member.comm);
    return bytesOf(MemoryInfo{member.rank, stats.memoryBytes, stats.connectedPeers, residentBytes()});
  };
  std::vector<MemoryInfo> memory;
  for (const std::string& bytes : worker.gather(sizeof(MemoryInfo), ofMember)) {
    memory.push_back(recordOf<MemoryInfo>(bytes));
  }
  return memory;
}

// One thread's way through the lines of the table. All threads of all processes go the same way.
class Session {
 public:
  Session(const Collective& collective, const Options& options, Worker& worker, Reporter& reporter)
      : collective_(collective), options_(options), worker_(worker), reporter_(reporter) {}

  int run() {
    worker_.prepare();
    const std::vector<int> roots = rootsToTry();
    const auto pairs = typesAndOperators();
    reporter_.start(introduce(worker_));
    reporter_.progress().expect(linesOf(options_), pairs.size() * roots.size(), options_.cycles);
    for (const auto& [type, op] : pairs) {
      worker_.select(type, op);
      for (const int root : roots) runSizes({type, op, root, 0});
    }
    if (options_.memoryReport) reporter_.addMemory(memoryOf(worker_));
    worker_.leave();
    return reporter_.finish();
  }

 private:
  // Without what the library refuses, unless nothing would be left.
  std::vector<std::pair<tuttiDataType_t, Operator>> typesAndOperators() const {
    const std::vector<Operator> none = {Operator::kSum}, &operators = collective_.reduces ? options_.operators : none;
    std::vector<std::pair<tuttiDataType_t, Operator>> pairs;
    for (const tuttiDataType_t type : options_.types)
      for (const Operator op : operators)
        if (isDefined(op, type)) pairs.emplace_back(type, op);
    if (pairs.empty())
      fail(fmt::format("-o {} is not defined for {}: {}", nameOf(operators.front()), nameOf(options_.types.front()),
                       wayOut(operators.front())));
    return pairs;
  }

  static const char* wayOut(Operator op) {
    return op < Operator::kBitAnd ? "choose numbers with -d" : "choose integers or bool with -d";
  }

  // What every rank finds alike, one alone says.
  [[noreturn]] void fail(const std::string& text) const {
    Failure failure(text);
    failure.isEcho = !reporter_.speaks();
    throw failure;
  }

  std::vector<int> rootsToTry() const {
    if (!collective_.rooted) return {-1};
    if (options_.root >= worker_.ranks()) {
      const char* text =
          worker_.ranks() == 1 ? "--root {}: there is only {} rank" : "--root {}: there are only {} ranks";
      fail(fmt::format(fmt::runtime(text), options_.root, worker_.ranks()));
    }
    if (options_.root >= 0) return {options_.root};
    std::vector<int> roots;
    for (int root = 0; root < worker_.ranks(); ++root) roots.push_back(root);
    return roots;
  }

  void runSizes(Job job) {
    reporter_.progress().show(fmt::format("warming up {}", nameOf(job.type)));
    for (job.bytes = options_.minBytes; options_.warmups > 0 && job.bytes <= options_.maxBytes;
         job.bytes = std::max<size_t>(job.bytes * 2, 1)) {
      worker_.warmUp(job);
    }
    for (int cycle = 0; options_.cycles == 0 || cycle < options_.cycles; ++cycle) {
      for (std::optional<size_t> bytes = options_.minBytes; bytes; bytes = options_.nextSize(*bytes)) {
        job.bytes = *bytes;
        runLine(job);
      }
    }
  }

  void runLine(const Job& job) {
    Row row;
    std::tie(row.bytes, row.count) = worker_.shownSize(job);
    row.type = nameOf(job.type);
    row.op = collective_.reduces ? nameOf(job.op) : "none";
    row.root = job.root;
    const std::string what = fmt::format("{} {} {} bytes", row.type, row.op, row.bytes);
    reporter_.progress().show(what);
    row.outOfPlace = worker_.measure(job, false);
    if (collective_.inPlace) {
      reporter_.progress().show(what + ", in place");
      row.inPlace = worker_.measure(job, true);
    }
    reporter_.progress().count();
    reporter_.add(std::move(row));
  }

  const Collective& collective_;
  const Options& options_;
  Worker& worker_;
  Reporter& reporter_;
};

int runThread(const Collective& collective, const Options& options, const std::vector<Seat>& seats) {
  int rank = -1;
  tuttiCommUserRank(seats.front().comm, &rank);
  Worker worker(collective, options, seats);
  Reporter reporter(options, rank == 0);
  try {
    return Session(collective, options, worker, reporter).run();
  } catch (const std::exception& error) {
    // The text before the abort: afterwards the others' complaints would come first.
    const auto* failure = dynamic_cast<const Failure*>(&error);
    if (failure == nullptr || !failure->isEcho || !options.sharesErrors)
      std::fprintf(stderr, "%s: %s\n", collective.program, error.what());
    reporter.fail(error.what());
    worker.abort();
    return EXIT_FAILURE;
  }
}

int runRanks(const Collective& collective, const Options& options, const std::vector<Seat>& seats) {
  admitRecordSignal();
  std::atomic<int> status{EXIT_SUCCESS};
  const auto work = [&](int thread) {
    const auto first = seats.begin() + std::ptrdiff_t{thread} * options.communicatorsPerThread;
    // Relaxed: joining the threads orders the write before the read.
    if (runThread(collective, options, {first, first + options.communicatorsPerThread}) != EXIT_SUCCESS) {
      status.store(EXIT_FAILURE, std::memory_order_relaxed);
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 1; thread < options.threads; ++thread) {
    threads.push_back(startThread([&work, thread] { work(thread); }));
  }
  work(0);
  for (std::thread& thread : threads) thread.join();
  return status.load(std::memory_order_relaxed);
}

// Signals are held no earlier: until here they end a program that waits for a launcher's other processes.
int launch(const Options& options) {
  const HeldSignals signals;
  return launchLocal(options, signals);
}

constexpr const char* kNobodySays =
    "nobody says that other processes take part (TUTTI_RANK and TUTTI_SIZE, or a launcher, would)";
constexpr const char* kSaidToBeAlone = "no other process takes part, by what TUTTI_SIZE or a launcher says";

// Not where the user has said so.
void tellWhatDoesNotCount(const Collective& collective, const char* why) {
  const Entries all = wholeEnvironment();
  const std::string names = placesOf(all);
  if (names.empty() || nobodyCounts(all)) return;
  std::fprintf(stderr, "%s: %s, so the ranks meet by themselves: %s not used\n", collective.program, why,
               (names + (names.find(',') == names.npos ? " is" : " are")).c_str());
}

// A process that this program started is a rank and starts none, whatever else it is told. So is one of a launcher's.
int runProcess(const Collective& collective, Options& options) {
  holdRecordSignal();
  const bool isChild = followParent(options, collective.program), mayStart = !isChild && options.ranks > 1;
  settleSettings(options);
  // What needs no asking is not asked: the communicator that it takes would tell of itself, beside the one measured.
  const bool isOnly = nobodySaysWho(wholeEnvironment());
  options.sharesErrors = isOnly || isChild;
  if (isOnly) tellWhatDoesNotCount(collective, kNobodySays);
  if (mayStart && isOnly) return launch(options);
  if (isOnly && options.localRanks() > 1) return runRanks(collective, options, joinAlone(options));
  Processes processes(options);
  if (!isOnly && processes.alone()) tellWhatDoesNotCount(collective, kSaidToBeAlone);
  if (mayStart && processes.alone()) {
    processes.leave();
    return launch(options);
  }
  options.sharesErrors = options.sharesErrors || processes.alone();
  return runRanks(collective, options, joinAll(options, processes));
}

// Where one of the first three descriptors was closed, nothing else shall get its number and what is printed there: it
// leads to where nothing can be written, and what is to be printed is an error.
void keepStandardDescriptors() {
  for (int fd = ::open("/dev/null", O_RDONLY); fd >= 0; fd = ::open("/dev/null", O_RDONLY)) {
    if (fd <= STDERR_FILENO) continue;
    ::close(fd);
    return;
  }
}

}  // namespace

int runProgram(const Collective& collective, int argc, char** argv) {
  keepStandardDescriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows too long (ulimit -f) is an error like any other
  try {
    std::optional<Options> options = parseOptions(argc, argv, collective.program);
    return options ? runProcess(collective, *options) : EXIT_SUCCESS;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "%s: %s\nTry --help.\n", collective.program, error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", collective.program, error.what());
  }
  return EXIT_FAILURE;
}

}  // namespace tutti::perf
