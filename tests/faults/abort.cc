// tuttiCommAbort and tuttiCommRevoke from another thread, whatever the communicator is doing: they return at once, the
// call that was under way ends, the other ranks are told, and nothing is left behind.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "faults/support/operation.h"
#include "faults/support/options.h"
#include "faults/support/process.h"

namespace {

using namespace tutti::faults;
using std::chrono::milliseconds;

constexpr const char* kUsage =
    R"(usage: tutti_abort [--transports LIST] [--rounds N] [--seed S] [--only TEXT] [--short]
Aborts or revokes a communicator of 2 to 4 ranks, which are threads, while a rank joins, connects, is in a collective, a
group, a split, a shrink, finalizes or destroys.
  --transports  of p2p,shm,tcp (all)
  --rounds      of each situation (20)
  --seed        (by the clock; with --short always 1)
  --only        only situations whose name contains TEXT
  --short       the form that the tests use: one round)";

constexpr int kJoinMs = 4'000;

// What rank 0 does when it is struck, and whether the others take part. Returns the first error.
struct Situation {
  std::string name;
  bool together = true;  // else the others only wait to be told
  std::function<tuttiResult_t(tuttiComm_t comm, int rank, int ranks)> act;
  bool destroys = false;  // rank 0's handle is gone after it
  bool shrinks = false;   // it is revoked first, and the others are there but do not come
};

tuttiResult_t runOne(Kind kind, size_t count, tuttiComm_t comm, int rank, int ranks, tuttiStream_t stream) {
  Operation operation;
  operation.kind = kind;
  operation.count = count;
  operation.salt = 1;
  Part part(operation, rank, ranks);
  tuttiResult_t result = part.issue(comm, stream);
  // Ranks without a part in the messages must meet the error too.
  if (kind >= Kind::kMessage && result == tuttiSuccess) result = tuttiBarrier(comm, stream);
  if (!stream) return result;
  const tuttiResult_t later = tuttiStreamSynchronize(stream);
  return result == tuttiSuccess ? later : result;
}

// Again and again, until something stops it.
tuttiResult_t runOften(const std::function<tuttiResult_t()>& once) {
  tuttiResult_t result = tuttiSuccess;
  while (result == tuttiSuccess) result = once();
  return result;
}

tuttiResult_t runStream(Kind kind, tuttiComm_t comm, int rank, int ranks) {
  tuttiStream_t stream = nullptr;
  if (const auto made = tuttiStreamCreate(&stream, 0)) return made;
  const auto result = runOften([&] { return runOne(kind, 500, comm, rank, ranks, stream); });
  tuttiStreamDestroy(stream);
  return result;
}

tuttiResult_t runGroup(tuttiComm_t comm, int rank, int ranks) {
  Operation operation;
  operation.count = 3000;
  Part reduces(operation, rank, ranks);
  operation.kind = Kind::kMessages;
  Part messages(operation, rank, ranks);
  tuttiGroupStart();
  const auto first = reduces.issue(comm, nullptr);
  const auto second = messages.issue(comm, nullptr);
  const auto ended = tuttiGroupEnd();
  return first != tuttiSuccess ? first : second != tuttiSuccess ? second : ended;
}

tuttiResult_t runSplit(tuttiComm_t comm) {
  tuttiComm_t child = nullptr;
  const auto result = tuttiCommSplit(comm, 0, 0, &child, nullptr);
  if (result == tuttiSuccess) tuttiCommDestroy(child);
  return result;
}

// Something is queued that will never end, and then `end` waits for it.
tuttiResult_t endWithWork(tuttiComm_t comm, tuttiResult_t (*end)(tuttiComm_t)) {
  tuttiStream_t stream = nullptr;
  if (const auto made = tuttiStreamCreate(&stream, 0)) return made;
  float never = 0;
  const auto queued = tuttiRecv(&never, 1, tuttiFloat32, 1, comm, stream);
  const auto ended = end(comm);
  const auto worked = tuttiStreamSynchronize(stream);
  tuttiStreamDestroy(stream);
  return queued != tuttiSuccess ? queued : worked != tuttiSuccess ? worked : ended;
}

std::vector<Situation> situations() {
  std::vector<Situation> list;
  for (int k = 0; k < kKinds; ++k) {
    const Kind kind = static_cast<Kind>(k);
    const std::string name = nameOf(kind);
    list.push_back({"connect for " + name, true, [kind](auto comm, int rank, int ranks) {
                      const auto first = runOne(kind, 20'000, comm, rank, ranks, nullptr);
                      // Whoever is done with it meets the error at the next call.
                      return first != tuttiSuccess ? first : runOften([&] { return tuttiBarrier(comm, nullptr); });
                    }});
    list.push_back({"in " + name, true, [kind](auto comm, int rank, int ranks) {
                      return runOften([&] { return runOne(kind, 500, comm, rank, ranks, nullptr); });
                    }});
    list.push_back({"on a stream, " + name, true,
                    [kind](auto comm, int rank, int ranks) { return runStream(kind, comm, rank, ranks); }});
  }
  const auto waitsIn = [&](const char* name, auto act) { list.push_back({name, false, act}); };
  waitsIn("waits in all-reduce",
          [](auto comm, int rank, int ranks) { return runOne(Kind::kAllReduce, 1000, comm, rank, ranks, nullptr); });
  waitsIn("waits in receive", [](auto comm, int, int) {
    float never = 0;
    return tuttiRecv(&never, 1, tuttiFloat32, 1, comm, nullptr);
  });
  waitsIn("waits in group", [](auto comm, int rank, int ranks) { return runGroup(comm, rank, ranks); });
  waitsIn("waits in split", [](auto comm, int, int) { return runSplit(comm); });
  waitsIn("finalizes", [](auto comm, int, int) { return endWithWork(comm, tuttiCommFinalize); });
  waitsIn("destroys", [](auto comm, int, int) { return endWithWork(comm, tuttiCommDestroy); });
  list.back().destroys = true;
  waitsIn("waits in shrink", [](auto comm, int, int) {
    tuttiCommRevoke(comm, 0);
    tuttiComm_t child = nullptr;
    const auto result = tuttiCommShrink(comm, nullptr, 0, &child, nullptr, 0);
    if (result == tuttiSuccess) tuttiCommDestroy(child);
    return result;
  });
  list.back().shrinks = true;
  list.push_back({"in groups", true, [](auto comm, int rank, int ranks) {
                    return runOften([&] { return runGroup(comm, rank, ranks); });
                  }});
  list.push_back({"in splits", true, [](auto comm, int, int) { return runOften([&] { return runSplit(comm); }); }});
  return list;
}

// How long things took, in milliseconds.
struct Times {
  double strike = 0, own = 0, others = 0;
  void include(const Times& more) {
    strike = std::max(strike, more.strike);
    own = std::max(own, more.own);
    others = std::max(others, more.others);
  }
};

// 0 for what came before it.
double since(int64_t then) { return then == 0 ? 0 : std::max(0.0, static_cast<double>(now() - then) / 1e6); }

class Round {
 public:
  Round(const Situation& situation, std::string transports, bool revokes, uint64_t seed)
      : situation_(situation), transports_(std::move(transports)), revokes_(revokes), random_(seed) {
    ranks_ = static_cast<int>(2 + random_() % 3);
    delay_ = std::chrono::microseconds(random_() % 8'000);
  }

  std::string run() {
    if (tuttiGetUniqueId(&id_) != tuttiSuccess) return tuttiGetLastError(nullptr);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks_; ++rank) threads.emplace_back([this, rank] { runRank(rank); });
    std::thread striker([this] { strike(); });
    for (auto& thread : threads) thread.join();
    striker.join();
    if (ready_ >= 0 && comm_ != nullptr && (revokes_ && !situation_.destroys)) tuttiCommDestroy(comm_);
    return faults_;
  }
  const Times& times() const noexcept { return times_; }

 private:
  void fault(const std::string& text) {
    const std::lock_guard lock(mutex_);
    faults_ += "  " + text + "\n";
  }

  void runRank(int rank) {
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    config.transports = transports_.c_str();
    config.operationTimeoutMs = static_cast<int>(20'000 * patience());
    // The meeting place of a split that was given up stays open for so long.
    config.joinTimeoutMs = kJoinMs * static_cast<int>(patience());
    tuttiComm_t comm = nullptr;
    if (tuttiCommInitRankConfig(&comm, ranks_, id_, rank, &config) != tuttiSuccess) {
      fault(fmt::format("rank {} could not join: {}", rank, tuttiGetLastError(nullptr)));
      ready_ = -1000;
      return;
    }
    if (rank == 0) comm_ = comm;
    // Together: the strike falls before all have come, or after.
    if (++ready_ == ranks_ || rank == 0) ready_.notify_all();
    const tuttiResult_t result =
        rank == 0 || situation_.together ? situation_.act(comm, rank, ranks_) : awaitError(comm);
    told(comm, rank, result);
    if (situation_.shrinks) over_.wait(false);
    if (rank != 0) tuttiCommDestroy(comm);
  }

  static tuttiResult_t awaitError(tuttiComm_t comm) {
    tuttiResult_t state = tuttiSuccess;
    while (state == tuttiSuccess) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      if (const auto asked = tuttiCommGetAsyncError(comm, &state)) return asked;
    }
    return state;
  }

  // Rank 0 may come to its next call after the abort, when its handle is gone.
  void told(tuttiComm_t comm, int rank, tuttiResult_t result) {
    const double took = since(struck_);
    const std::string text = tuttiGetLastError(comm);
    const bool late = rank == 0 && !revokes_ && result == tuttiInvalidArgument;
    if (result != tuttiRemoteError && !late)
      fault(fmt::format("rank {} got \"{}\": {} {}", rank, tuttiGetErrorString(result), text,
                        tuttiGetLastError(nullptr)));
    const std::string named = text + tuttiGetLastError(nullptr);
    const auto tells = [&](const char* what) { return named.find(what) != std::string::npos; };
    // Where rank 0 revokes it and is struck, either may have been first.
    const bool cause = ((revokes_ || situation_.shrinks) && tells("revoked the communicator")) ||
                       (!revokes_ && tells("tuttiCommAbort"));
    if (rank != 0 && !(cause && tells("rank 0 (")))
      fault(fmt::format("rank {} was not told who did it: {}", rank, named));
    const std::lock_guard lock(mutex_);
    double& most = rank == 0 ? times_.own : times_.others;
    most = std::max(most, took);
  }

  void strike() {
    for (int seen = ready_; seen >= 0 && seen < ranks_; seen = ready_) ready_.wait(seen);
    if (ready_ < 0) return;
    std::this_thread::sleep_for(delay_);
    const int64_t began = now();
    struck_ = began;
    struck_.notify_all();
    const tuttiResult_t result = revokes_ ? tuttiCommRevoke(comm_, 0) : tuttiCommAbort(comm_);
    const double took = since(began);
    over_ = true;
    over_.notify_all();
    if (result != tuttiSuccess) fault(fmt::format("the strike got {}", tuttiGetLastError(nullptr)));
    const std::lock_guard lock(mutex_);
    times_.strike = took;
  }

  const Situation& situation_;
  std::string transports_;
  bool revokes_;
  std::mt19937_64 random_;
  int ranks_ = 2;
  std::chrono::microseconds delay_{};
  tuttiUniqueId id_{};
  std::atomic<int> ready_{0};
  std::atomic<tuttiComm_t> comm_{nullptr};
  std::atomic<int64_t> struck_{0};
  std::atomic<bool> over_{false};  // the strike has returned: whoever leaves now leaves after it
  std::mutex mutex_;
  Times times_;
  std::string faults_;
};

// Aborts a rank that joins in the background; sometimes the others come, sometimes they never do.
std::string joinRound(uint64_t seed, Times& times) {
  std::mt19937_64 random(seed);
  const int ranks = static_cast<int>(2 + random() % 3);
  const int come = static_cast<int>(1 + random() % static_cast<uint64_t>(ranks));
  tuttiUniqueId id;
  if (tuttiGetUniqueId(&id) != tuttiSuccess) return tuttiGetLastError(nullptr);
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.nonBlocking = 1;
  config.joinTimeoutMs = kJoinMs * static_cast<int>(patience());
  std::vector<tuttiComm_t> comms(static_cast<size_t>(come));
  std::string faults;
  for (int rank = 0; rank < come; ++rank)
    if (tuttiCommInitRankConfig(&comms[static_cast<size_t>(rank)], ranks, id, rank, &config) != tuttiInProgress)
      return tuttiGetLastError(nullptr);
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 10'000));
  std::thread striker([&] {
    for (tuttiComm_t comm : comms) {
      const int64_t began = now();
      if (tuttiCommAbort(comm) != tuttiSuccess) faults += std::string("  abort: ") + tuttiGetLastError(nullptr) + "\n";
      times.strike = std::max(times.strike, since(began));
    }
  });
  striker.join();
  return faults;
}

class Tally {
 public:
  Tally(uint64_t seed, uint64_t rounds) : seed_(seed), rounds_(rounds) {}

  void run(const std::string& name, const std::function<std::string(uint64_t seed, Times& times)>& round) {
    Times worst;
    const Holdings before = holdings();
    for (uint64_t i = 0; i < rounds_; ++i) {
      Times times;
      const std::string faults = round(mix(seed_, i), times);
      worst.include(times);
      if (faults.empty()) continue;
      ++faulty_;
      fmt::print("FAILED {} (seed {}, round {})\n{}", name, seed_, i, faults);
    }
    const Holdings after = awaitHoldings(before, milliseconds(kJoinMs + 3'000) * static_cast<int64_t>(patience()));
    if (after.threads > before.threads || after.descriptors > before.descriptors) {
      ++faulty_;
      fmt::print("FAILED {}: {} descriptors before, {} after; {} threads before, {} after\n", name, before.descriptors,
                 after.descriptors, before.threads, after.threads);
    }
    fmt::print("{:<52} returned within {:6.2f} ms, own call {:7.2f} ms, other ranks {:7.2f} ms{}\n", name, worst.strike,
               worst.own, worst.others, worst.strike > 100 ? "  !! later than 100 ms" : "");
    std::fflush(stdout);
    all_.include(worst);
  }
  const Times& all() const noexcept { return all_; }
  size_t faulty() const noexcept { return faulty_; }

 private:
  uint64_t seed_, rounds_;
  Times all_;
  size_t faulty_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options(argc, argv, kUsage);
  // So long a meeting place stays open to which not all ranks have come.
  ::setenv("TUTTI_JOIN_TIMEOUT_MS", std::to_string(kJoinMs * static_cast<int>(patience())).c_str(), 1);
  const uint64_t seed = options.seed();
  const std::string only = options.text("only", "");
  Tally tally(seed, options.number("rounds", options.has("short") ? 1 : 20));
  fmt::print("seed {}\n", seed);
  if (std::string("abort joins").find(only) != std::string::npos) tally.run("abort joins", joinRound);
  for (const auto& transports : itemsOf(options.text("transports", "p2p,shm,tcp")))
    for (const bool revokes : {false, true})
      for (const Situation& situation : situations()) {
        if (revokes && situation.shrinks) continue;  // a revoke is what a shrink follows; it does not end one
        const std::string name = fmt::format("{} {}: {}", transports, revokes ? "revoke" : "abort", situation.name);
        if (name.find(only) == std::string::npos) continue;
        tally.run(name, [&](uint64_t roundSeed, Times& times) {
          Round round(situation, transports, revokes, roundSeed);
          std::string faults = round.run();
          times = round.times();
          return faults;
        });
      }
  fmt::print(
      "{} faulty; the strike returned within {:.2f} ms, its rank's call within {:.2f} ms, others' within {:.2f} "
      "ms{}\n",
      tally.faulty(), tally.all().strike, tally.all().own, tally.all().others,
      tally.all().strike > 100 ? "  !! later than 100 ms" : "");
  return tally.faulty() != 0;
}
