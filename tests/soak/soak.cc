// Jobs whose ranks die and return, for as long as one likes: the process that lives through all of it must not grow.
#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <sstream>
#include <thread>

#include "faults/support/options.h"
#include "faults/support/process.h"
#include "faults/support/worker.h"

namespace {

using namespace tutti::faults;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kUsage =
    R"(usage: tutti_soak [--minutes M] [--seconds S] [--seed S] [--short]
One process lives on while the other ranks of its jobs die, leave and are started again, over shm, tcp and both. Looks
at its memory, descriptors and threads after each generation, and prints a line every ten seconds.
  --minutes  how long (10)
  --seconds  instead of minutes
  --seed     of the first generation (by the clock; with --short always 1)
  --short    the form that the tests use: 8 seconds)";

constexpr size_t kMostElements = 20'000;

// A generation: one job from its first rank's joining to its last rank's leaving.
struct Generation {
  uint64_t seed;
  std::string transports;
  bool dies;  // a rank is killed; else all leave in good order
  explicit Generation(uint64_t number) : seed(number), dies(mix(number, 9) % 4 != 0) {
    const char* const kTransports[] = {"shm", "tcp", "shm,tcp"};
    transports = kTransports[mix(number, 10) % 3];
  }
  uint64_t operations() const { return 20 + mix(seed, 11) % 400; }
};

tuttiConfig_t configuration() {
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.joinTimeoutMs = config.operationTimeoutMs = static_cast<int>(20'000 * patience());
  return config;
}

// A rank that others are started for: it works until something stops it, or all is done.
int runPassingRank(char** argv) {
  const Wire wire = wireToHarness();
  const Generation generation(std::strtoull(argv[2], nullptr, 10));
  Draw draw(generation.seed, generation.transports);
  draw.limitCounts(kMostElements);
  std::vector<tuttiUniqueId> ids(draw.session().communicators.size());
  ids[0] = decodeId(argv[3]);
  Worker worker(draw.session(), std::atoi(argv[1]), configuration());
  worker.onAlarm([&] {
    for (auto& member : worker.members())
      if (member.comm) tuttiCommRevoke(member.comm, 0);
  });
  auto trouble = worker.open(ids);
  wire.send("ready");
  while (!trouble && worker.operations() < generation.operations()) trouble = worker.runStep(draw.step());
  if (trouble && trouble->isWrong) wire.send("wrong " + trouble->text);
  worker.close();
  return trouble && trouble->isWrong;
}

class Survivor {
 public:
  explicit Survivor(uint64_t seed) : next_(seed) {}

  // Returns what went wrong, or nothing.
  std::string runGeneration() {
    const Generation generation(next_++);
    Draw draw(generation.seed, generation.transports);
    draw.limitCounts(kMostElements);
    std::vector<tuttiUniqueId> ids(draw.session().communicators.size());
    if (tuttiGetUniqueId(&ids[0]) != tuttiSuccess) return tuttiGetLastError(nullptr);
    std::vector<Child> others;
    for (int rank = 1; rank < draw.session().ranks; ++rank)
      others.emplace_back(std::vector{std::to_string(rank), std::to_string(generation.seed), encodeId(ids[0])});
    Worker worker(draw.session(), 0, configuration());
    std::string fault = work(generation, worker, draw, ids, others);
    if (const auto trouble = worker.close(); trouble && fault.empty()) fault = trouble->text;
    for (Child& child : others)
      if (!child.awaitEnd(seconds(30 * static_cast<int64_t>(patience())))) fault += " a rank hangs;";
    operations_ += worker.operations();
    return fault.empty() ? "" : fmt::format("seed {}: {}", generation.seed, fault);
  }
  uint64_t operations() const noexcept { return operations_; }
  uint64_t deaths() const noexcept { return deaths_; }

 private:
  std::string work(const Generation& generation, Worker& worker, Draw& draw, const std::vector<tuttiUniqueId>& ids,
                   std::vector<Child>& others) {
    worker.onAlarm([&] {
      for (size_t i = 1; i < worker.members().size(); ++i)
        if (worker.members()[i].comm) tuttiCommRevoke(worker.members()[i].comm, 0);
    });
    if (const auto trouble = worker.open(ids)) return trouble->text;
    const uint64_t strike = generation.dies ? generation.operations() / 2 : ~uint64_t{0};
    bool struck = false;
    std::optional<Trouble> trouble;
    while (!trouble && worker.operations() < generation.operations()) {
      if (!struck && worker.operations() >= strike) {
        others[generation.seed % others.size()].signal(SIGKILL);
        struck = true;
        ++deaths_;
      }
      trouble = worker.runStep(draw.step());
    }
    if (!trouble) return "";
    if (trouble->isWrong || !struck || trouble->result != tuttiRemoteError) return trouble->text;
    return generation.seed % 2 == 0 ? shrink(worker) : "";
  }

  // The others do not come: they have revoked and left, or have left too. What shrink makes of it must not leak either.
  static std::string shrink(Worker& worker) {
    tuttiComm_t child = nullptr;
    tuttiConfig_t config = configuration();
    config.joinTimeoutMs = 300;
    if (tuttiCommShrink(worker.members()[0].comm, nullptr, 0, &child, &config, 0) == tuttiSuccess)
      tuttiCommDestroy(child);
    return "";
  }

  uint64_t next_, operations_ = 0, deaths_ = 0;
};

// What the allocator keeps for later is not held by anybody.
void giveBackMemory() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

// What the process holds over time: after the warm-up none of it may rise.
class Ledger {
 public:
  void enter(const Holdings& held) { entries_.push_back(held); }
  // Of a part of the entries, in tenths: the least that was held, which no job in progress can raise.
  Holdings least(size_t from, size_t to) const {
    Holdings least = entries_.back();
    for (size_t i = entries_.size() * from / 10; i < entries_.size() * to / 10; ++i) {
      least.descriptors = std::min(least.descriptors, entries_[i].descriptors);
      least.threads = std::min(least.threads, entries_[i].threads);
      least.residentKiB = std::min(least.residentKiB, entries_[i].residentKiB);
      least.allocatedKiB = std::min(least.allocatedKiB, entries_[i].allocatedKiB);
    }
    return least;
  }
  size_t size() const noexcept { return entries_.size(); }

 private:
  std::vector<Holdings> entries_;
};

// One arena for all threads, so that what the process has of the system follows what it holds, up to gaps: many arenas
// keep what the most unlucky moment of each left behind.
void useOneArena() {
#if defined(__GLIBC__)
  ::mallopt(M_ARENA_MAX, 1);
#endif
}

// A sanitizer's allocator keeps what was freed for a while, on purpose; it looks for leaks itself. And a few
// generations are the warm-up.
bool judgesMemory([[maybe_unused]] const Ledger& ledger) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return ledger.size() >= 30;
#endif
}

bool verdict(const Ledger& ledger) {
  const Holdings early = ledger.least(3, 6), late = ledger.least(7, 10);
  // Shells of ended communicators and streams, which a short run has not all made (src/api/shelf.h).
  constexpr long kShells = 256;
  constexpr long kGaps = 768;
  const bool fatter =
      late.allocatedKiB > early.allocatedKiB + kShells || late.residentKiB > early.residentKiB + kShells + kGaps;
  const bool grows =
      late.descriptors > early.descriptors || late.threads > early.threads || (judgesMemory(ledger) && fatter);
  fmt::print(
      "descriptors {} then {}, threads {} then {}, allocated {} KiB then {} KiB, resident {} KiB then {} KiB over "
      "{} generations: {}\n",
      early.descriptors, late.descriptors, early.threads, late.threads, early.allocatedKiB, late.allocatedKiB,
      early.residentKiB, late.residentKiB, ledger.size(), grows ? "GROWS" : "no growth");
  return !grows;
}

}  // namespace

int main(int argc, char** argv) {
  if (std::strcmp(argv[0], "rank") == 0) return argc < 4 ? 2 : runPassingRank(argv);
  const Options options(argc, argv, kUsage);
  useOneArena();
  const uint64_t limit = options.number("seconds", options.has("short") ? 8 : 60 * options.number("minutes", 10));
  const uint64_t seed = options.seed();
  fmt::print("seed {}\n", seed);
  Survivor survivor(seed);
  Ledger ledger;
  const Holdings before = holdings();
  const int64_t began = now();
  int64_t printed = began;
  while (now() - began < static_cast<int64_t>(limit) * 1'000'000'000) {
    if (const std::string fault = survivor.runGeneration(); !fault.empty()) {
      fmt::print("FAILED: {}\n", fault);
      return 1;
    }
    awaitHoldings(before, seconds(5 * static_cast<int64_t>(patience())));
    giveBackMemory();
    const Holdings held = holdings();
    ledger.enter(held);
    if (now() - printed < 10'000'000'000) continue;
    printed = now();
    fmt::print(
        "{:>5} s  {} generations, {} deaths, {} operations; {} descriptors, {} threads, {} KiB ({} KiB allocated)\n",
        (printed - began) / 1'000'000'000, ledger.size(), survivor.deaths(), survivor.operations(), held.descriptors,
        held.threads, held.residentKiB, held.allocatedKiB);
    std::fflush(stdout);
  }
  return verdict(ledger) ? 0 : 1;
}
