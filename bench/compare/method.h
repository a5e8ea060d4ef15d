// The one method by which every system is measured. A driver is a Peer and a main() that calls runDriver.
//
// Of each cell: fill, run once, compare the result; a few calls more to warm up; look how long one takes; then batches
// of calls, each begun by all ranks together. A batch takes as long as its slowest rank, and the median of the batches
// counts. Within a batch nothing keeps the ranks together but the operation itself, as in nccl-tests: so a broadcast's
// root may run ahead.
#pragma once
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "arguments.h"
#include "cell.h"
#include "meeting.h"
#include "values.h"

namespace tutti::compare {

// One cell with its memory. `whole` and `part` count elements. In place, an all-gather's input is its own part of the
// output.
struct Call {
  Cell cell;
  int rank, ranks;
  size_t whole, part;
  std::byte *send, *recv;

  size_t partBytes() const { return part * sizeOf(cell.type); }
  size_t wholeBytes() const { return whole * sizeOf(cell.type); }
  std::byte* own(std::byte* vector) const { return vector + static_cast<size_t>(rank) * partBytes(); }
};

// A system as the method sees it.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual bool knows(const Cell&) const { return true; }
  // Ordinary memory, which begins where pages do.
  virtual std::byte* allocate(size_t bytes) {
    void* memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<std::byte*>(memory);
  }
  virtual void release(std::byte* memory) { std::free(memory); }
  virtual void prepare(const Call&) {}  // before the first run() of a cell, and
  virtual void finish() {}              // after the last one
  virtual void run(const Call& call) = 0;
  // Completes what other ranks still need of this one.
  virtual void barrier() = 0;
  // Where run() leaves the result. In place, NCCL's reduce-scatter leaves it at the rank's own part.
  virtual const std::byte* result(const Call& call) const {
    if (!call.cell.inPlace) return call.recv;
    return call.cell.operation == Operation::kReduceScatter ? call.own(call.send) : call.send;
  }
};

inline double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double medianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

inline cpu_set_t processorsHere() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) throw std::runtime_error("cannot ask for its processors");
  return set;
}

inline void stayOn(const cpu_set_t& set) {
  if (sched_setaffinity(0, sizeof set, &set) != 0) throw std::runtime_error("cannot stay on its processor");
}

inline void stayOn(const std::vector<int>& cpus, int rank) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpus[static_cast<size_t>(rank) % cpus.size()]), &set);
  stayOn(set);
}

// For every thread of the process; what may not be done is left. Of use to who wakes threads by the system: with others
// of the ordinary class they might wait for its next tick.
inline void becomeRealTime() {
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    sched_param parameters{};
    parameters.sched_priority = 1;
    sched_setscheduler(std::atoi(thread.path().filename().c_str()), SCHED_RR, &parameters);
  }
}

// A thread that computes as long as it is there, if asked for.
class BusyThread {
 public:
  explicit BusyThread(bool wanted) {
    if (wanted) thread_ = std::thread([this] { compute(); });
  }
  ~BusyThread() {
    ended_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
  }

 private:
  void compute() const {
    double value = 1;
    while (!ended_.load(std::memory_order_relaxed)) {
      for (int i = 0; i < 1000; ++i) value = std::sqrt(value + 1);
      volatile double kept = value;
      static_cast<void>(kept);
    }
  }
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

// What a word to another processor and back took while something was measured, from what it took before and behind
// that. 0: not known, or no longer the same (within ALIKE of lib/analysis.py).
inline double lineOf(double before, double behind) {
  return std::max(before, behind) <= 1.5 * std::min(before, behind) ? (before + behind) / 2 : 0;
}

class Method {
 public:
  Method(Peer& peer, Meeting& meeting, const Arguments& arguments)
      : peer_(peer),
        meeting_(meeting),
        budget_(arguments.budget),
        batch_(arguments.busy ? kBusyBatch : kBatch),
        busy_(arguments.busy),
        cpus_(arguments.cpus),
        cells_(readCells(arguments.cells)) {
    size_t most = 0;
    for (const Cell& cell : cells_) most = std::max(most, cell.whole(meeting.ranks()) * sizeOf(cell.type));
    for (std::byte*& area : areas_) {
      area = peer.allocate(most);
      std::memset(area, 0, most);
    }
    if (meeting.rank() == 0 && (file_ = std::fopen(arguments.out.c_str(), "a")) == nullptr)
      throw std::runtime_error("cannot write " + arguments.out);
  }
  ~Method() {
    for (std::byte* area : areas_) peer_.release(area);
    if (file_ != nullptr) std::fclose(file_);
  }
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;

  void runAll() {
    measureCells();
    tellProcessorTime();
  }

 private:
  // Seconds: a few ticks of the scheduler; beside busy threads as many slices of theirs, which are several ticks each.
  static constexpr double kBatch = 0.008, kBusyBatch = 0.1;
  static constexpr long kFewest = 3, kMost = 200;  // of them
  static constexpr int kWarmUp = 8;                // calls

  void measureCells() {
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (!peer_.knows(cells_[i])) continue;
      tell("{\"begun\": %zu}\n", i);  // so that after a failure one can go on behind it
      const Cell& cell = cells_[i];
      const Timing timing = measure(callOf(cell));
      const std::string line = timing.line > 0 ? std::to_string(timing.line * 1e6) : "null";
      tell("{\"op\": \"%s\", \"type\": \"%s\", \"bytes\": %zu, \"in_place\": %s, \"us\": %.4f, \"line_us\": %s}\n",
           nameOf(cell.operation), nameOf(cell.type), cell.bytes, cell.inPlace ? "true" : "false", timing.call * 1e6,
           line.c_str());
    }
  }

  // At once: what is measured stays, whatever comes.
  template <class... Values>
  void tell(const char* format, Values... values) {
    if (file_ == nullptr) return;
    std::fprintf(file_, format, values...);
    std::fflush(file_);
  }

  // Of all ranks, since launchers do not always account for those that they start.
  void tellProcessorTime() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto secondsOf = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    const double mine = secondsOf(usage.ru_utime) + secondsOf(usage.ru_stime);
    double all[kMostRanks] = {};
    meeting_.exchange(&mine, all, sizeof mine);
    tell("{\"processor_s\": %.3f}\n", std::accumulate(all, all + kMostRanks, 0.0));
  }

  Call callOf(const Cell& cell) const {
    Call call{cell,
              meeting_.rank(),
              meeting_.ranks(),
              cell.whole(meeting_.ranks()),
              cell.part(meeting_.ranks()),
              areas_[0],
              cell.inPlace ? areas_[0] : areas_[1]};
    return call;
  }

  // Seconds of a call; and of a word to another processor and back, before the warm-up and behind the batches: what
  // the machine was like, which on a virtual one changes with the minutes (lineOf).
  struct Timing {
    double call, line;
  };

  Timing measure(const Call& call) {
    prepareMemory(call);
    peer_.prepare(call);
    meeting_.barrier();
    peer_.run(call);
    together();
    compare(call);
    // In place each sum is the next one's input: of zeros, it stays one that is quick to add.
    if (call.cell.inPlace) std::memset(call.send, 0, call.wholeBytes());
    const double before = thereAndBack();
    warmUp(call);  // and who may be moved about is where the system puts it again
    const double median = medianOf(batches(call));
    together();
    const double behind = thereAndBack();
    peer_.finish();
    return {median, lineOf(before, behind)};
  }

  // Systems set themselves up in their first calls of a kind: they touch memory, and some try ways.
  void warmUp(const Call& call) {
    double seconds = 0;
    for (int i = 0; i < kWarmUp && seconds < budget_; ++i) seconds += batch(call, 1);
  }

  // Ranks 0 and 1 stay on a processor each meanwhile: on one they would wait for each other's slices, as beside
  // somebody who computes.
  double thereAndBack() {
    if (busy_ || cpus_.size() < 2) return 0;
    const cpu_set_t before = processorsHere();
    if (meeting_.rank() < 2) stayOn(cpus_, meeting_.rank());
    const double seconds = meeting_.thereAndBack();
    stayOn(before);
    return seconds;
  }

  void prepareMemory(const Call& call) {
    const Cell& cell = call.cell;
    const bool ownPart = cell.operation == Operation::kAllGather;
    std::byte* input = ownPart && cell.inPlace ? call.own(call.send) : call.send;
    std::memset(call.recv, 0, call.wholeBytes());
    if (cell.operation == Operation::kBroadcast && call.rank != 0) return;
    fill(cell.type, input, 0, ownPart ? call.part : call.whole, call.rank);
  }

  void compare(const Call& call) {
    const std::byte* result = peer_.result(call);
    const long wrong = firstWrong(call.cell, result, call.rank, call.ranks);
    if (wrong < 0) return;
    throw std::runtime_error(std::string(nameOf(call.cell.operation)) + " of " + std::to_string(call.cell.bytes) +
                             " bytes of " + nameOf(call.cell.type) + (call.cell.inPlace ? ", in place" : "") +
                             ": element " + std::to_string(wrong) + " is wrong");
  }

  // First what the system has under way is completed: a rank that waits at the meeting does nothing for it.
  void together() {
    peer_.barrier();
    meeting_.barrier();
  }

  // Seconds of a call, of the slowest rank.
  double batch(const Call& call, long calls) {
    together();
    const auto start = std::chrono::steady_clock::now();
    for (long i = 0; i < calls; ++i) peer_.run(call);
    const double seconds = secondsSince(start) / static_cast<double>(calls);
    peer_.barrier();
    return meeting_.largest(seconds);
  }

  // Batches that take a few ticks each, as many as the budget has room for.
  std::vector<double> batches(const Call& call) {
    long calls = 1;
    std::vector<double> results = twoBatches(call, calls);
    while (quickest(results) * static_cast<double>(calls) < batch_ / 2) {
      const double growth = std::clamp(batch_ / (quickest(results) * static_cast<double>(calls)), 2.0, 20.0);
      calls = std::lround(std::ceil(static_cast<double>(calls) * growth));
      results = twoBatches(call, calls);
    }
    const double seconds = quickest(results);
    if (call.cell.slow > 0 && seconds * 1e6 > call.cell.slow) return results;
    const long wanted = std::clamp(std::lround(budget_ / (static_cast<double>(calls) * seconds)), kFewest, kMost);
    while (results.size() < static_cast<size_t>(wanted)) results.push_back(batch(call, calls));
    return results;
  }

  // By one alone the time would not be known: something may always come between.
  std::vector<double> twoBatches(const Call& call, long calls) {
    const double first = batch(call, calls);
    return {first, batch(call, calls)};
  }
  static double quickest(const std::vector<double>& results) {
    return *std::min_element(results.begin(), results.end());
  }

  Peer& peer_;
  Meeting& meeting_;
  double budget_, batch_;
  bool busy_;
  std::vector<int> cpus_;
  std::vector<Cell> cells_;
  std::byte* areas_[2] = {};
  FILE* file_ = nullptr;
};

using MakePeer = std::function<std::unique_ptr<Peer>(const Arguments&, Meeting&)>;

// The main() of a driver, when rank and ranks are known: its exit status. `make` sets the system up.
inline int runDriver(const Arguments& arguments, const MakePeer& make) {
  alarm(arguments.deadline);  // nothing hangs for ever
  std::unique_ptr<Meeting> meeting;
  try {
    if (arguments.pinned) stayOn(arguments.cpus, arguments.rank);
    meeting = std::make_unique<Meeting>(arguments.meeting, arguments.rank, arguments.ranks);
    const std::unique_ptr<Peer> peer = make(arguments, *meeting);
    const BusyThread busy(arguments.busy);
    if (arguments.realTime) becomeRealTime();
    Method(*peer, *meeting, arguments).runAll();
    meeting->barrier();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", arguments.rank, error.what());
    if (meeting != nullptr) meeting->fail();
    return 1;
  }
}

}  // namespace tutti::compare
