// Calls that do not match, of every kind, over every transport: an error on every rank that names both calls, never a
// hang, a crash or a wrong result.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "faults/mismatch_cases.h"
#include "faults/support/options.h"

namespace {

using namespace tutti::faults;
using Clock = std::chrono::steady_clock;

constexpr const char* kUsage =
    R"(usage: tutti_mismatch [--transports LIST] [--only TEXT] [--side-by-side N] [--verbose] [--short]
Lets one rank's call differ from what the others call, in every way, and looks at what each rank is told.
  --transports    of p2p,shm,tcp (all)
  --only          only cases whose description contains TEXT
  --side-by-side  how many cases run at a time (8)
  --verbose       shows what every rank was told
  --short         the form that the tests use: every 23rd case)";

constexpr int kBarriers = 3;

// What one rank was told.
struct Told {
  tuttiResult_t first = tuttiSuccess, last = tuttiSuccess;  // by its call; by that or a barrier after it
  std::string text, wrong;
};

// Lets those that leave and those that stay away hold still until the others have seen it.
class Gate {
 public:
  explicit Gate(int others) : left_(others) {}
  void pass() {
    const std::lock_guard lock(mutex_);
    --left_;
    changed_.notify_all();
  }
  void await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return left_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int left_;
};

class CaseRun {
 public:
  explicit CaseRun(const Case& test) : case_(test), told_(static_cast<size_t>(test.ranks)), gate_(test.ranks - 1) {}

  // Faults, a line each.
  std::string run() {
    if (tuttiGetUniqueId(&id_) != tuttiSuccess) return fmt::format("tuttiGetUniqueId: {}", tuttiGetLastError(nullptr));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < case_.ranks; ++rank) threads.emplace_back([this, rank] { runRank(rank); });
    for (auto& thread : threads) thread.join();
    std::string faults;
    for (int rank = 0; rank < case_.ranks; ++rank)
      if (const std::string fault = judge(rank); !fault.empty())
        faults +=
            fmt::format("  rank {}: {}\n    told ({}, then {}): {}\n", rank, fault,
                        tuttiGetErrorString(told(rank).first), tuttiGetErrorString(told(rank).last), told(rank).text);
    return faults;
  }
  const Told& told(int rank) const { return told_[static_cast<size_t>(rank)]; }

 private:
  const Act& actOf(int rank) const { return rank == case_.deviator ? case_.deviates : case_.others; }

  void runRank(int rank) {
    Told& told = told_[static_cast<size_t>(rank)];
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    config.transports = case_.transports.c_str();
    config.joinTimeoutMs = static_cast<int>(60'000 * patience());
    config.operationTimeoutMs = static_cast<int>((case_.awaitsDeadline() ? 400 : 10'000) * patience());
    tuttiComm_t comm = nullptr;
    told.first = told.last = tuttiCommInitRankConfig(&comm, case_.ranks, id_, rank, &config);
    if (told.first != tuttiSuccess) {
      told.text = std::string("joining: ") + tuttiGetLastError(nullptr);
      gate_.pass();
      return;
    }
    act(comm, rank, told);
    tuttiCommDestroy(comm);
  }

  void act(tuttiComm_t comm, int rank, Told& told) {
    const Act& mine = actOf(rank);
    if (mine.what == Act::What::kLeave) return;
    if (mine.what == Act::What::kStayAway) return gate_.await();
    Part part(mine.operation, rank, case_.ranks);
    told.first = told.last = call(comm, rank, mine, part);
    if (told.first == tuttiSuccess && mine.what == Act::What::kCollective) told.wrong = part.check();
    // Whoever has only sent learns it with a later call: the others have to find it first.
    for (int i = 0; i < kBarriers && told.last == tuttiSuccess; ++i) told.last = tuttiBarrier(comm, nullptr);
    told.text = tuttiGetLastError(comm);
    if (rank != case_.deviator) gate_.pass();
  }

  tuttiResult_t call(tuttiComm_t comm, int rank, const Act& mine, Part& part) {
    tuttiStream_t stream = nullptr;
    if (case_.onStream && tuttiStreamCreate(&stream, 0) != tuttiSuccess) return tuttiSystemError;
    tuttiResult_t result = issue(comm, rank, mine, part, stream);
    if (!stream) return result;
    const tuttiResult_t later = tuttiStreamSynchronize(stream);
    tuttiStreamDestroy(stream);
    return result == tuttiSuccess ? later : result;
  }

  // The deviator's messages are for the next rank, the others' for the deviator.
  tuttiResult_t issue(tuttiComm_t comm, int rank, const Act& mine, Part& part, tuttiStream_t stream) {
    if (mine.what == Act::What::kCollective) return part.issue(comm, stream);
    const int peer = rank == case_.deviator ? (rank + 1) % case_.ranks : case_.deviator;
    std::vector<float>& buffer = buffers_[static_cast<size_t>(rank)];
    buffer.resize(mine.operation.count);
    return mine.what == Act::What::kSend ? tuttiSend(buffer.data(), buffer.size(), tuttiFloat32, peer, comm, stream)
                                         : tuttiRecv(buffer.data(), buffer.size(), tuttiFloat32, peer, comm, stream);
  }

  std::string judge(int rank) const {
    const Told& it = told(rank);
    const Act& mine = actOf(rank);
    if (!it.wrong.empty()) return "wrong result: " + it.wrong;
    if (mine.what == Act::What::kLeave || mine.what == Act::What::kStayAway)
      return it.last == tuttiSuccess ? "" : "could not join";
    if (it.last == tuttiSuccess) return "was told nothing";
    if (it.last != case_.expected && it.last != case_.expectedToo)
      return fmt::format("expected \"{}\", got \"{}\"", tuttiGetErrorString(case_.expected),
                         tuttiGetErrorString(it.last));
    for (const std::string& word : case_.words)
      if (!containsOne(it.text, word)) return fmt::format("the text lacks \"{}\"", word);
    return "";
  }

  static bool containsOne(const std::string& text, const std::string& alternatives) {
    for (size_t from = 0; from <= alternatives.size();) {
      const size_t bar = std::min(alternatives.find('|', from), alternatives.size());
      if (text.find(alternatives.substr(from, bar - from)) != std::string::npos) return true;
      from = bar + 1;
    }
    return false;
  }

  const Case& case_;
  tuttiUniqueId id_{};
  std::vector<Told> told_;
  Gate gate_;
  std::map<size_t, std::vector<float>> buffers_{{0, {}}, {1, {}}, {2, {}}};
};

// Runs cases, some side by side. One that lasts too long ends the program: nothing may hang.
class Runner {
 public:
  Runner(const std::vector<Case>& cases, bool verbose) : cases_(cases), verbose_(verbose), began_(cases.size()) {}

  size_t run(size_t sideBySide) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < sideBySide; ++i) threads.emplace_back([this] { work(); });
    std::thread watch([this] { watchOver(); });
    for (auto& thread : threads) thread.join();
    ended_ = true;
    watch.join();
    return faulty_;
  }

 private:
  static int64_t now() { return Clock::now().time_since_epoch() / std::chrono::milliseconds(1); }

  void work() {
    for (size_t i = next_++; i < cases_.size(); i = next_++) {
      began_[i] = now();
      CaseRun run(cases_[i]);
      const std::string faults = run.run();
      report(cases_[i], faults, run, now() - began_[i]);
      began_[i] = 0;
    }
  }

  void report(const Case& test, const std::string& faults, const CaseRun& run, int64_t milliseconds) {
    const std::lock_guard lock(mutex_);
    if (!faults.empty()) ++faulty_;
    if (!faults.empty() || verbose_)
      fmt::print("{:<6} {:>5} ms  {}\n{}", faults.empty() ? "ok" : "FAILED", milliseconds, test.describe(), faults);
    if (verbose_ && faults.empty())
      for (int rank = 0; rank < test.ranks; ++rank) fmt::print("    rank {}: {}\n", rank, run.told(rank).text);
    std::fflush(stdout);
  }

  void watchOver() {
    const auto limit = static_cast<int64_t>(90'000 * patience());
    while (!ended_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      for (size_t i = 0; i < cases_.size(); ++i)
        if (const int64_t began = began_[i]; began != 0 && now() - began > limit) {
          fmt::print("FAILED: hangs: {}\n", cases_[i].describe());
          std::fflush(stdout);
          ::abort();
        }
    }
  }

  const std::vector<Case>& cases_;
  bool verbose_;
  std::vector<std::atomic<int64_t>> began_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  size_t faulty_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options(argc, argv, kUsage);
  const size_t stride = options.has("short") ? 23 : 1;
  std::vector<Case> cases;
  for (const auto& transports : itemsOf(options.text("transports", "p2p,shm,tcp")))
    for (Case& test : mismatchCases(transports, stride))
      if (test.describe().find(options.text("only", "")) != std::string::npos) cases.push_back(std::move(test));
  const auto began = Clock::now();
  Runner runner(cases, options.has("verbose"));
  const size_t faulty = runner.run(options.number("side-by-side", 8));
  fmt::print("{} cases, {} faulty, {:.1f} s\n", cases.size(), faulty,
             std::chrono::duration<double>(Clock::now() - began).count());
  return faulty != 0 || cases.empty();
}
