// The lanes and links of whole jobs, run in an order that chance chooses: no order may hang.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "faults/support/options.h"
#include "interleavings/job.h"

namespace {

using namespace tutti;

constexpr const char* kUsage =
    R"(usage: tutti_interleavings [--seed S] [--schedules N] [--threads N] [--short] [--finds]
Draws jobs of 2 to 6 ranks (collectives, barriers, sparse all-to-all-v, gather-v and scatter-v, messages, empty ones and
to oneself too, in groups, on streams, over one or two communicators, over mapped memory and streams that hold little),
and runs all their lanes on one thread: a seed decides who runs next, which stream moves how much, and how much it
holds. Ends with status 1 where nothing moves any more.
  --seed       of the first schedule (by the clock; with --short always 1); schedule k uses seed + k
  --schedules  how many (1,000,000)
  --threads    how many run at a time (1)
  --short      the form that the tests use: 3,000 schedules
  --finds      ends with status 0 where one hangs and with 1 where none does: for an engine with a fault put into it)";

struct Run {
  uint64_t begin = 0, end = 0;
  std::atomic<uint64_t> next{0}, turns{0};
  std::atomic<bool> stopped{false};
  std::mutex mutex;  // guards what follows
  bool hangs = false, failed = false;
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now(), told = began;

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); }
};

void report(Run& run, uint64_t seed, const interleavings::Result& result) {
  std::lock_guard lock(run.mutex);
  run.stopped = true;
  (result.hangs ? run.hangs : run.failed) = true;
  fmt::print("seed {}, schedule {}: {}\nto see it again: --schedules 1 --seed {}\n", seed, seed - run.begin + 1,
             *result.trouble, seed);
}

// A line every ten seconds.
void tellProgress(Run& run) {
  const auto now = std::chrono::steady_clock::now();
  std::lock_guard lock(run.mutex);
  if (now - run.told < std::chrono::seconds(10)) return;
  run.told = now;
  const uint64_t done = run.next - run.begin;
  fmt::print("{} of {} schedules, {:.0f}/s\n", done, run.end - run.begin, double(done) / run.seconds());
  std::fflush(stdout);
}

void work(Run& run) {
  for (uint64_t seed; !run.stopped && (seed = run.next++) < run.end;) {
    const auto result = interleavings::runSchedule(seed);
    run.turns += result.turns;
    if (result.trouble) report(run, seed, result);
    if (seed % 64 == 0) tellProgress(run);
  }
}

int summary(const Run& run, bool finds) {
  if (run.failed) return 1;
  if (run.hangs) return finds ? 0 : 1;
  fmt::print("{} schedules (seeds {} to {}), {} turns in {:.0f} s: none hung\n", run.end - run.begin, run.begin,
             run.end - 1, run.turns.load(), run.seconds());
  return finds ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const faults::Options options(argc, argv, kUsage);
  const uint64_t seed = options.seed();
  Run run;
  run.next = run.begin = seed;
  run.end = seed + options.number("schedules", options.has("short") ? 3'000 : 1'000'000);
  fmt::print("seed {}\n", seed);
  std::vector<std::thread> threads;
  for (uint64_t i = 1; i < options.number("threads", 1); ++i) threads.emplace_back([&run] { work(run); });
  work(run);
  for (std::thread& thread : threads) thread.join();
  return summary(run, options.has("finds"));
}
