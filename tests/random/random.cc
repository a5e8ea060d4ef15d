// Random operations over every transport, each byte of each result compared.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "faults/support/options.h"
#include "random/apart.h"
#include "random/session.h"
#include "support/sanitized.h"

namespace {

using namespace tutti::faults;

constexpr const char* kUsage =
    R"(usage: tutti_random [--variant LIST] [--seed S] [--operations N] [--session N] [--short]
Draws operations by chance (collective, type, operator, count, placement, root, stream, group, communicator, and for each
of these its transports, its channels, an algorithm or none, encryption or not; and now and then an algorithm, channels, a
tag and a request of the call's own, or a persistent call), runs them on 2 to 8 ranks, and compares
every byte with what must come out; results that are rounded with the exact one, give or take the roundings, and every
rank's bits with the others'.
  --variant     of p2p,shm,tcp,mix,faulty (ranks are threads), processes (a rank each), mixed (several) (all)
  --seed        of the first session (by the clock; with --short always 1); session k uses seed + k
  --operations  in all, spread evenly over the variants (1,000,000)
  --session     operations of one session, which has its own ranks and communicators (500)
  --short       the form that the tests use: 7,000 operations, under a sanitizer 2,100)";

double secondsSince(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

// Runs one variant's share. Returns operations a second.
double runVariant(const std::string& variant, uint64_t seed, uint64_t operations, uint64_t session) {
  const auto began = std::chrono::steady_clock::now();
  for (uint64_t done = 0; done < operations; done += session, ++seed) {
    const uint64_t now = std::min(session, operations - done);
    const auto start = std::chrono::steady_clock::now();
    const std::string what = runSession({seed, variant, now});
    fmt::print("{:<7} seed {:<10} {:>7}/{} operations  {:>7.0f}/s  {}\n", variant, seed, done + now, operations,
               double(now) / secondsSince(start), what);
    std::fflush(stdout);
  }
  return double(operations) / secondsSince(began);
}

}  // namespace

int main(int argc, char** argv) {
  if (std::strcmp(argv[0], "rank") == 0) return runAsProcess(argc, argv);
  const Options options(argc, argv, kUsage);
  const bool isShort = options.has("short");
  const auto variants = itemsOf(options.text("variant", "p2p,shm,tcp,mix,faulty,processes,mixed"));
  const uint64_t seed = options.seed();
  const uint64_t all = options.number("operations", isShort ? (tutti::kSanitized ? 2'100 : 7'000) : 1'000'000);
  const uint64_t session =
      std::max<uint64_t>(1, options.number("session", isShort ? (tutti::kSanitized ? 75 : 100) : 500));
  fmt::print("seed {}\n", seed);
  std::string summary;
  for (const auto& variant : variants) {
    const double rate = runVariant(variant, seed, all / variants.size(), session);
    summary += fmt::format("{}{} {:.0f}/s", summary.empty() ? "" : ", ", variant, rate);
  }
  fmt::print("{} operations, no wrong byte ({})\n", all / variants.size() * variants.size(), summary);
  return 0;
}
