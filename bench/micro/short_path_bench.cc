// The short path: small all-reduces of two processes over shared memory, in units of the least that two cores can do:
// each writes a cache line of its own and waits for the other's ("exchange"). Both processes are pinned, one a core,
// and both measurements run between the same two cores. The counter "exchanges" is time per all-reduce / time per
// exchange.
#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#include "bench/micro/pin.h"
#include "link/fifo.h"
#include "tutti/tutti.h"

namespace {

using tutti::link::Counter;

void require(tuttiResult_t result, const char* what) {
  if (result == tuttiSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, tuttiGetLastError(nullptr));
  std::exit(1);
}

enum class Job : uint32_t { kRoundTrip, kCrossing, kAllReduce, kEnd };

// What the two processes share beside the library: the next job for the second one, and two lines to exchange.
struct Shared {
  alignas(128) std::atomic<uint64_t> order{0};  // number of the job; the fields below belong to it
  Job job = Job::kEnd;
  uint64_t iterations = 0, bytes = 0;
  Counter lines[2];
  tuttiUniqueId id;
};

class Player {
 public:
  Player(Shared& shared, int rank) : shared_(shared), rank_(rank), in_(1 << 20), out_(1 << 20) {
    tutti::pinTo(rank);
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    config.transports = "shm";
    require(tuttiCommInitRankConfig(&comm_, 2, shared.id, rank, &config), "join");
  }
  ~Player() { tuttiCommDestroy(comm_); }

  void play(Job job, uint64_t iterations, uint64_t bytes) {
    for (uint64_t i = 0; i < iterations; ++i) {
      if (job != Job::kAllReduce)
        exchange(job == Job::kRoundTrip && rank_ == 1);
      else
        require(tuttiAllReduce(in_.data(), out_.data(), bytes / sizeof(float), tuttiFloat32, tuttiSum, comm_, nullptr),
                "all-reduce");
    }
  }

 private:
  // Release and acquire: each process's store pairs with the other one's load.
  void exchange(bool answers) {
    ++turn_;
    if (!answers) shared_.lines[rank_].value.store(turn_, std::memory_order_release);
    while (shared_.lines[1 - rank_].value.load(std::memory_order_acquire) < turn_) {
    }
    if (answers) shared_.lines[rank_].value.store(turn_, std::memory_order_release);
  }

  Shared& shared_;
  int rank_;
  uint64_t turn_ = 0;
  tuttiComm_t comm_ = nullptr;
  std::vector<float> in_, out_;
};

// The second process: does what is ordered until it is told to end.
void follow(Shared& shared) {
  Player player(shared, 1);
  for (uint64_t done = 0;; ++done) {
    while (shared.order.load(std::memory_order_acquire) == done) ::sched_yield();  // pairs with order()'s release
    if (shared.job == Job::kEnd) return;
    player.play(shared.job, shared.iterations, shared.bytes);
  }
}

class Leader {
 public:
  Leader() : shared_(*new (mapShared()) Shared) {
    require(tuttiGetUniqueId(&shared_.id), "unique id");
    partner_ = ::fork();
    if (partner_ == 0) {
      follow(shared_);
      ::_exit(0);
    }
    player_ = new Player(shared_, 0);
    nanoseconds(Job::kAllReduce, 1000, 8);  // connects
  }
  ~Leader() {
    order(Job::kEnd, 0, 0);
    delete player_;
    ::waitpid(partner_, nullptr, 0);
  }

  double nanoseconds(Job job, uint64_t iterations, uint64_t bytes) {
    order(job, iterations, bytes);
    player_->play(job, 1, bytes);  // both are there
    const auto start = std::chrono::steady_clock::now();
    player_->play(job, iterations - 1, bytes);
    const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
    return elapsed.count() / static_cast<double>(iterations - 1);
  }

 private:
  static void* mapShared() {
    return ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  }
  void order(Job job, uint64_t iterations, uint64_t bytes) {
    shared_.job = job;
    shared_.iterations = iterations;
    shared_.bytes = bytes;
    shared_.order.fetch_add(1, std::memory_order_release);  // pairs with follow()'s acquire
  }

  Shared& shared_;
  pid_t partner_;
  Player* player_ = nullptr;
};

Leader* leader = nullptr;

void allReduce(benchmark::State& state) {
  constexpr uint64_t kBatch = 20'000;
  const auto bytes = static_cast<uint64_t>(state.range(0));
  double roundTrip = 1e9, crossing = 1e9, reduce = 1e9;  // the best batch: what the machine does when left alone
  for (auto _ : state) {
    roundTrip = std::min(roundTrip, leader->nanoseconds(Job::kRoundTrip, kBatch, 0));
    crossing = std::min(crossing, leader->nanoseconds(Job::kCrossing, kBatch, 0));
    reduce = std::min(reduce, leader->nanoseconds(Job::kAllReduce, kBatch, bytes));
  }
  state.counters["all_reduce_ns"] = reduce;
  state.counters["round_trip_ns"] = roundTrip;
  state.counters["crossing_ns"] = crossing;
  state.counters["round_trips"] = reduce / roundTrip;
  state.counters["crossings"] = reduce / crossing;
}
BENCHMARK(allReduce)->Arg(8)->Arg(64)->Arg(1024)->Arg(8192)->Iterations(20)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  leader = new Leader;
  benchmark::RunSpecifiedBenchmarks();
  delete leader;
  return 0;
}
