#include "random/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "faults/support/options.h"
#include "faults/support/worker.h"
#include "random/transports.h"

namespace tutti::faults {
namespace {

struct Shared {
  uint64_t seed;
  std::string variant;
  uint64_t operations;
  std::vector<tuttiUniqueId> ids;  // of each communicator that is no split
};

[[noreturn]] void fail(const Shared& shared, int ranks, int rank, const Trouble& trouble) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);  // never let go: the first failure is the one that counts
  fmt::print(stderr,
             "FAILED: seed {}, {}, {} ranks, operation {}, rank {}: {}\n"
             "  again: tutti_random --variant {} --seed {} --operations {} --session {}\n",
             shared.seed, shared.variant, ranks, trouble.operation, rank, trouble.text, shared.variant, shared.seed,
             trouble.operation + 1, trouble.operation + 1);
  std::fflush(nullptr);
  ::_exit(1);
}

void runRank(const Shared& shared, int rank) {
  Draw draw(shared.seed, shared.variant);
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.joinTimeoutMs = config.connectTimeoutMs = config.operationTimeoutMs = static_cast<int>(60'000 * patience());
  Worker worker(draw.session(), rank, config, useFaultyNetwork);
  auto trouble = worker.open(shared.ids);
  while (!trouble && worker.operations() < shared.operations) trouble = worker.runStep(draw.step());
  if (!trouble) trouble = worker.close();
  if (trouble) fail(shared, draw.session().ranks, rank, *trouble);
}

}  // namespace

std::string runSession(uint64_t seed, const std::string& variant, uint64_t operations) {
  const Draw draw(seed, variant);
  Shared shared{seed, variant, operations, {}};
  std::string over;
  for (const auto& spec : draw.session().communicators) {
    over += fmt::format("{}{}{}", over.empty() ? "" : " ", spec.parent < 0 ? "" : "split:", spec.transports);
    shared.ids.emplace_back();
    if (spec.parent < 0 && tuttiGetUniqueId(&shared.ids.back()) != tuttiSuccess)
      fail(shared, draw.session().ranks, -1, {0, -1, tuttiSystemError, tuttiGetLastError(nullptr)});
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < draw.session().ranks; ++rank)
    threads.emplace_back([&shared, rank] { runRank(shared, rank); });
  for (auto& thread : threads) thread.join();
  forgetFaultyNetworks();
  return fmt::format("{} ranks, {}", draw.session().ranks, over);
}

}  // namespace tutti::faults
