// The hand-over of a slot from one core to another and back, beside the least that any hand-over can cost: two cores
// that write one cache line in turn. Both run between the same two cores in the same program.
//
// Each round is a ping and a pong; the time of a round is two hand-overs. "handover_ns" is half a round.
#include <benchmark/benchmark.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "link/link.h"

namespace {

using tutti::link::Counter;
using tutti::link::Fifo;
using tutti::link::RecvEnd;
using tutti::link::SendEnd;

std::vector<int> allowedCores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

// For as long as it lives, the calling thread runs on one core alone.
class Pinned {
 public:
  explicit Pinned(int core) {
    ::pthread_getaffinity_np(::pthread_self(), sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ::pthread_setaffinity_np(::pthread_self(), sizeof one, &one);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() { ::pthread_setaffinity_np(::pthread_self(), sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

// Runs `ping` for every iteration here, and `pong` over and over on the second core until the end.
template <class Ping, class Pong>
void playOnTwoCores(benchmark::State& state, Ping ping, Pong pong) {
  const auto cores = allowedCores();
  if (cores.size() < 2) return state.SkipWithError("needs two cores");
  std::atomic<bool> done{false};
  std::thread partner([&] {
    const Pinned pinned(cores[1]);
    pong(done);
  });
  std::chrono::duration<double, std::nano> elapsed{};
  {
    const Pinned pinned(cores[0]);
    const auto start = std::chrono::steady_clock::now();
    for (auto _ : state) ping();
    elapsed = std::chrono::steady_clock::now() - start;
  }
  done.store(true);
  partner.join();
  state.counters["handover_ns"] = elapsed.count() / (2 * static_cast<double>(state.iterations()));
}

void bareCacheLine(benchmark::State& state) {
  auto line = std::make_unique<Counter>();
  uint64_t turn = 0;
  playOnTwoCores(
      state,
      [&] {
        line->value.store(++turn, std::memory_order_release);  // pairs with the acquire of the other core
        ++turn;
        while (line->value.load(std::memory_order_acquire) != turn) {
        }
      },
      [&](const std::atomic<bool>& done) {
        for (uint64_t mine = 1; !done.load(std::memory_order_relaxed);) {
          if (line->value.load(std::memory_order_acquire) != mine) continue;
          line->value.store(mine + 1, std::memory_order_release);  // pairs with the acquire of the first core
          mine += 2;
        }
      });
}
BENCHMARK(bareCacheLine)->UseRealTime();

struct Memory {
  Memory(uint32_t slotBytes, uint32_t depth)
      : bytes(new (std::align_val_t(128)) std::byte[Fifo::bytesFor(slotBytes, depth)]()),
        fifo(Fifo::over(bytes, slotBytes, depth)) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::operator delete[](bytes, std::align_val_t(128)); }
  std::byte* bytes;
  Fifo fifo;
};

void post(SendEnd& end, const std::byte* data, uint32_t bytes) {
  while (!end.hasRoom()) {
  }
  std::memcpy(end.place(bytes), data, bytes);
  end.post({}, bytes);
}

void take(RecvEnd& end, std::byte* data, uint32_t bytes) {
  std::memcpy(data, end.payload(bytes), bytes);
  end.release();
}

void fifoPingPong(benchmark::State& state) {
  constexpr uint32_t kSlotBytes = 128 << 10, kDepth = 4;
  const auto bytes = static_cast<uint32_t>(state.range(0));
  Memory there(kSlotBytes, kDepth), back(kSlotBytes, kDepth);
  SendEnd firstSend{.fifo = there.fifo}, secondSend{.fifo = back.fifo};
  RecvEnd firstRecv{.fifo = back.fifo}, secondRecv{.fifo = there.fifo};
  std::vector<std::byte> first(bytes), second(bytes);
  playOnTwoCores(
      state,
      [&] {
        post(firstSend, first.data(), bytes);
        while (!firstRecv.ready()) {
        }
        take(firstRecv, first.data(), bytes);
      },
      [&](const std::atomic<bool>& done) {
        while (!done.load(std::memory_order_relaxed)) {
          if (!secondRecv.ready()) continue;
          take(secondRecv, second.data(), bytes);
          post(secondSend, second.data(), bytes);
        }
      });
  state.SetBytesProcessed(2 * static_cast<int64_t>(state.iterations()) * bytes);
}
BENCHMARK(fifoPingPong)->Arg(8)->Arg(4 << 10)->Arg(64 << 10)->UseRealTime();

}  // namespace
