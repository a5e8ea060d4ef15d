// An all-reduce of two ranks that reach each other's buffers, in three ways: each rank sums its half and writes it to
// both outputs; each sums its half, a piece at a time, and copies the peer's pieces from there (two-shot); each sums
// all of it (one-shot). The first argument is bytes. Where the second is 1 each rank writes its input before the call,
// and reads its output behind it: the time is of all that, "call_us" of the call alone.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <thread>
#include <vector>

#include "bench/micro/pin.h"
#include "kernels/host/combine.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr float kValue = 1;  // of each rank's input
constexpr size_t kPiece = (64 << 10) / sizeof(float);

struct alignas(128) Counter {
  std::atomic<uint64_t> value{0};
  void next() { value.store(value.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
  void await(uint64_t least) const {
    while (value.load(std::memory_order_acquire) < least) {
    }
  }
};

struct Rank {
  explicit Rank(size_t count) : input(count, kValue), output(count) {}
  std::vector<float> input, output;
  Counter met, pieces;
};

class Pair {
 public:
  Pair(size_t bytes, bool isUsed)
      : count_(bytes / sizeof(float)), isUsed_(isUsed), ranks_{Rank(count_), Rank(count_)} {}

  // Until both have come.
  void meet(size_t self) {
    ranks_[self].met.next();
    ranks_[1 - self].met.await(ranks_[self].met.value.load(std::memory_order_relaxed));
  }
  // Begins when both have come. Returns how long the call took, in seconds.
  template <class Way>
  double round(size_t self, Way way) {
    if (isUsed_) std::ranges::fill(ranks_[self].input, kValue);
    meet(self);
    const auto begun = Clock::now();
    way(*this, self);
    const std::chrono::duration<double> seconds = Clock::now() - begun;
    if (isUsed_) benchmark::DoNotOptimize(largest(ranks_[self].output));
    return seconds.count();
  }

  bool isRight() const {
    return std::ranges::all_of(ranks_, [](const Rank& rank) {
      return std::ranges::all_of(rank.output, [](float value) { return value == 2 * kValue; });
    });
  }

  static void toBothOutputs(Pair& pair, size_t self) {
    pair.sum({&pair.ranks_[0], &pair.ranks_[1]}, self * pair.half(), pair.half());
    pair.meet(self);
  }
  static void inTwoShots(Pair& pair, size_t self) {
    Rank &own = pair.ranks_[self], &peer = pair.ranks_[1 - self];
    const size_t pieces = (pair.half() + kPiece - 1) / kPiece, others = (1 - self) * pair.half();
    const uint64_t before = own.pieces.value.load(std::memory_order_relaxed);
    for (size_t i = 0; i <= pieces; ++i) {
      if (i < pieces) {
        pair.sum({&own}, self * pair.half() + i * kPiece, pair.lengthOf(i));
        own.pieces.next();
      }
      if (i == 0) continue;
      peer.pieces.await(before + i);
      const size_t at = others + (i - 1) * kPiece;
      std::memcpy(own.output.data() + at, peer.output.data() + at, pair.lengthOf(i - 1) * sizeof(float));
    }
    pair.meet(self);
  }
  static void inOneShot(Pair& pair, size_t self) {
    pair.sum({&pair.ranks_[self]}, 0, pair.count_);
    pair.meet(self);
  }

 private:
  size_t half() const { return count_ / 2; }
  size_t lengthOf(size_t piece) const { return std::min(kPiece, half() - piece * kPiece); }
  void sum(std::initializer_list<Rank*> to, size_t at, size_t count) {
    std::array<std::byte*, 2> destinations{};
    std::transform(to.begin(), to.end(), destinations.begin(),
                   [&](Rank* rank) { return reinterpret_cast<std::byte*>(rank->output.data() + at); });
    const std::array<const std::byte*, 2> sources{reinterpret_cast<const std::byte*>(ranks_[0].input.data() + at),
                                                  reinterpret_cast<const std::byte*>(ranks_[1].input.data() + at)};
    tutti::kernels::Arithmetic arithmetic;
    arithmetic.type = tutti::DataType::kFloat32;
    tutti::kernels::combine(arithmetic, destinations.data(), static_cast<int>(to.size()), sources.data(), 2, count, -1,
                            nullptr);
  }
  static float largest(const std::vector<float>& values) {
    std::array<float, 64> most{};
    for (size_t i = 0; i + most.size() <= values.size(); i += most.size())
      for (size_t k = 0; k < most.size(); ++k) most[k] = std::max(most[k], values[i + k]);
    return std::ranges::max(most);
  }

  size_t count_;
  bool isUsed_;
  std::array<Rank, 2> ranks_;
};

template <class Way>
void play(benchmark::State& state, Way way) {
  Pair pair(static_cast<size_t>(state.range(0)), state.range(1) != 0);
  std::atomic<bool> done{false};
  std::thread peer([&] {
    tutti::pinTo(1);
    for (;;) {
      pair.meet(1);
      if (done.load(std::memory_order_relaxed)) return;
      pair.round(1, way);
    }
  });
  std::thread self([&] {
    tutti::pinTo(0);
    double seconds = 0;
    for (auto _ : state) {
      pair.meet(0);
      seconds += pair.round(0, way);
    }
    done.store(true, std::memory_order_relaxed);
    pair.meet(0);
    state.counters["call_us"] = seconds * 1e6 / static_cast<double>(state.iterations());
  });
  self.join();
  peer.join();
  if (!pair.isRight()) state.SkipWithError("a sum is wrong");
}

void sizes(benchmark::internal::Benchmark* one) {
  for (const int isUsed : {0, 1})
    for (const int64_t bytes : {64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}) one->Args({bytes, isUsed});
  one->UseRealTime()->Unit(benchmark::kMicrosecond);
}

BENCHMARK_CAPTURE(play, toBothOutputs, Pair::toBothOutputs)->Apply(sizes);
BENCHMARK_CAPTURE(play, inTwoShots, Pair::inTwoShots)->Apply(sizes);
BENCHMARK_CAPTURE(play, inOneShot, Pair::inOneShot)->Apply(sizes);

}  // namespace
