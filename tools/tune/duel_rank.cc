#include "tune/duel_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <span>
#include <thread>

#include "base/error.h"
#include "tune/match.h"
#include "tutti/tutti.h"

namespace tutti::tune {
namespace {

using schedule::Algorithm;
using Clock = std::chrono::steady_clock;

constexpr int kRoot = 0;
constexpr int kTimeoutMs = 120'000;  // no call of a sweep takes nearly as long
constexpr size_t kElement = sizeof(float);
// As the sweep has it: successive calls use successive parts of buffers that are larger than a small message, so that
// caches do not flatter it.
constexpr size_t kRoom = 32 << 10;

void require(tuttiResult_t result, const char* call, tuttiComm_t comm) {
  if (result != tuttiSuccess) throw Error(ErrorCode::kSystem, fmt::format("{}: {}", call, tuttiGetLastError(comm)));
}

// "all_reduce:ring;reduce:ring": barriers, which are timed beside them, stay as they are.
std::string ruleOf(Algorithm algorithm) {
  std::string rule;
  for (const Collective collective : tunable())
    if (schedule::rowOf(algorithm).has(collective))
      rule += fmt::format("{}{}:{}", rule.empty() ? "" : ";", commandName(collective), nameOf(algorithm));
  return rule;
}

// What one call of a cell is given.
struct Task {
  Collective collective;
  size_t count;  // elements
  size_t whole;  // of the larger buffer: bytes
  std::span<float> send, receive;

  const float* from(size_t call) const { return send.data() + shift(call); }
  float* to(size_t call) const { return receive.data() + shift(call); }
  size_t shift(size_t call) const {
    return call % std::max<size_t>(1, send.size() * kElement / whole) * whole / kElement;
  }
};

tuttiResult_t call(const Task& task, size_t number, tuttiComm_t comm) {
  const float* send = task.from(number);
  float* receive = task.to(number);
  switch (task.collective) {
    case Collective::kAllReduce:
      return tuttiAllReduce(send, receive, task.count, tuttiFloat32, tuttiSum, comm, nullptr);
    case Collective::kAllGather:
      return tuttiAllGather(send, receive, task.count, tuttiFloat32, comm, nullptr);
    case Collective::kReduceScatter:
      return tuttiReduceScatter(send, receive, task.count, tuttiFloat32, tuttiSum, comm, nullptr);
    case Collective::kBroadcast:
      return tuttiBroadcast(send, receive, task.count, tuttiFloat32, kRoot, comm, nullptr);
    case Collective::kReduce:
      return tuttiReduce(send, receive, task.count, tuttiFloat32, tuttiSum, kRoot, comm, nullptr);
    default:
      throw Error(ErrorCode::kInternal, fmt::format("a duel knows no {}", nameOf(task.collective)));
  }
}

class Rank {
 public:
  // Takes the communicator over: that of what the plan chooses, and of what the ranks tell each other.
  explicit Rank(tuttiComm_t planned) : planned_(planned) {
    require(tuttiCommUserRank(planned_, &rank_), "tuttiCommUserRank", planned_);
  }
  // After an error the others wait for nothing from here.
  ~Rank() {
    for (const auto& [algorithm, comm] : forced_) tuttiCommAbort(comm);
    if (planned_ != nullptr) tuttiCommAbort(planned_);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  void play(const DuelOrder& order) {
    makeRoom(order.cells);
    for (const Cell& cell : order.cells)
      for (const auto& [algorithm, rounds] : cell.times) force(algorithm);
    for (const Cell& cell : order.cells) {
      const std::string line = toLine(outcomeOf(cell, played(cell, order.seconds)));
      if (rank_ == 0) fmt::print("{}\n", line), std::fflush(stdout);
    }
    leave();
  }

 private:
  void makeRoom(const std::vector<Cell>& cells) {
    size_t bytes = kRoom;
    for (const Cell& cell : cells) bytes = std::max(bytes, wholeOf(cell));
    send_.assign(bytes / kElement, 1.0f), receive_.assign(bytes / kElement, 0.0f);
  }

  static size_t wholeOf(const Cell& cell) {
    const bool parts = cell.collective == Collective::kAllGather || cell.collective == Collective::kReduceScatter;
    return std::max(cell.bytes / kElement, size_t{1}) * kElement * (parts ? static_cast<size_t>(cell.ranks) : 1);
  }

  Task taskOf(const Cell& cell) {
    const size_t whole = wholeOf(cell), room = std::max(whole, kRoom) / kElement;
    return {cell.collective, std::max(cell.bytes / kElement, size_t{1}), whole, std::span(send_).first(room),
            std::span(receive_).first(room)};
  }

  void force(Algorithm algorithm) {
    if (forced_.contains(algorithm)) return;
    const std::string rule = ruleOf(algorithm);
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    config.algorithm = rule.c_str();
    tuttiComm_t comm = nullptr;
    require(tuttiCommSplit(planned_, 0, rank_, &comm, &config), "tuttiCommSplit", planned_);
    forced_[algorithm] = comm;
  }

  void leave() {
    for (auto& [algorithm, comm] : forced_) require(tuttiCommDestroy(comm), "tuttiCommDestroy", nullptr);
    forced_.clear();
    require(tuttiCommDestroy(std::exchange(planned_, nullptr)), "tuttiCommDestroy", nullptr);
  }

  void barrier(tuttiComm_t comm) const {
    tuttiCallConfig_t config = TUTTI_CALL_CONFIG_INITIALIZER;
    config.algorithm = "tree";  // as the sweep has it
    require(tuttiBarrierConfig(comm, nullptr, &config), "tuttiBarrierConfig", comm);
  }

  void loop(const Task& task, int calls, tuttiComm_t comm) const {
    const bool ends = endsInBarrier(task.collective);
    for (int i = 0; i < calls; ++i) {
      require(call(task, static_cast<size_t>(i), comm), "a collective", comm);
      if (ends) barrier(comm);
    }
  }

  // Microseconds of a call on this rank. What comes before the clock starts brings back into caches what the others
  // have driven out.
  double timed(const Task& task, int calls, tuttiComm_t comm) const {
    loop(task, calls / 8, comm);
    barrier(planned_);
    const auto start = Clock::now();
    loop(task, calls, comm);
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / calls;
  }

  // What the unforced communicator takes: links are made on the way.
  Algorithm choiceFor(const Task& task) const {
    require(call(task, 0, planned_), "a collective", planned_);
    tuttiCommStats_t stats{};
    stats.size = sizeof stats;
    require(tuttiCommGetStats(planned_, &stats), "tuttiCommGetStats", planned_);
    return schedule::algorithmByName(stats.lastAlgorithm);
  }

  tuttiComm_t commOf(const Match& match, size_t player) const {
    return player == 0 ? planned_ : forced_.at(match.bouts()[player - 1].contender);
  }

  // The slowest rank's times count, on all of them alike.
  std::vector<double> slowest(std::vector<double> us) const {
    require(tuttiAllReduce(us.data(), us.data(), us.size(), tuttiFloat64, tuttiMax, planned_, nullptr),
            "tuttiAllReduce", planned_);
    return us;
  }

  std::vector<double> oneRound(const Match& match, const Task& task) const {
    std::vector<double> us;
    for (const size_t player : match.order()) us.push_back(timed(task, match.calls(), commOf(match, player)));
    return slowest(std::move(us));
  }

  // The first round makes links, and wakes what sleeps: it does not count.
  Match played(const Cell& cell, double seconds) {
    const Task task = taskOf(cell);
    Match match(cell, choiceFor(task), seconds);
    match.settle(oneRound(match, task));
    while (!match.over()) match.add(oneRound(match, task));
    return match;
  }

  tuttiComm_t planned_;
  int rank_ = 0;
  std::map<Algorithm, tuttiComm_t> forced_;
  std::vector<float> send_, receive_;
};

tuttiConfig_t configOf(const std::string& transport) {
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.operationTimeoutMs = kTimeoutMs;
  config.transports = transport.c_str();
  return config;
}

void playThreads(const DuelOrder& order, const tuttiConfig_t& config) {
  std::vector<tuttiComm_t> comms(static_cast<size_t>(order.cells.front().ranks));
  require(tuttiCommInitAllConfig(comms.data(), static_cast<int>(comms.size()), nullptr, &config),
          "tuttiCommInitAllConfig", nullptr);
  std::mutex mutex;
  std::exception_ptr first;  // the others' are echoes of it
  std::vector<std::thread> threads;
  for (tuttiComm_t comm : comms)
    threads.emplace_back([&, comm] {
      try {
        Rank(comm).play(order);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

void playProcess(const DuelOrder& order, const tuttiConfig_t& config) {
  tuttiComm_t comm = nullptr;
  require(tuttiCommInitEnv(&comm, &config), "tuttiCommInitEnv", nullptr);
  Rank(comm).play(order);
}

}  // namespace

void playDuel(const DuelOrder& order, bool threads) {
  const tuttiConfig_t config = configOf(order.cells.front().transport);
  threads ? playThreads(order, config) : playProcess(order, config);
}

}  // namespace tutti::tune
