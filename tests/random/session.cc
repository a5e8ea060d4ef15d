#include "random/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "faults/support/options.h"
#include "faults/support/worker.h"
#include "random/apart.h"
#include "random/transports.h"

namespace tutti::faults {
namespace {

[[noreturn]] void fail(const Session& session, int ranks, int rank, const Trouble& trouble) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);  // never let go: the first failure is the one that counts
  fmt::print(stderr,
             "FAILED: seed {}, {}, {} ranks, operation {}, rank {}: {}\n"
             "  again: tutti_random --variant {} --seed {} --operations {} --session {}\n",
             session.seed, session.variant, ranks, trouble.operation, rank, trouble.text, session.variant, session.seed,
             trouble.operation + 1, trouble.operation + 1);
  std::fflush(nullptr);
  ::_exit(1);
}

void runRank(const Session& session, const std::vector<tuttiUniqueId>& ids, int rank) {
  Draw draw(session.seed, session.variant);
  draw.mayRound();
  draw.mayConfigure();
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.joinTimeoutMs = config.connectTimeoutMs = config.operationTimeoutMs = static_cast<int>(60'000 * patience());
  Worker worker(draw.session(), rank, config, useFaultyNetwork);
  auto trouble = worker.open(ids);
  while (!trouble && worker.operations() < session.operations) trouble = worker.runStep(draw.step());
  if (!trouble) trouble = worker.close();
  if (trouble) fail(session, draw.session().ranks, rank, *trouble);
}

std::string describe(const SessionSpec& spec) {
  std::string over;
  for (const auto& one : spec.communicators)
    over += fmt::format("{}{}{}{}{}", over.empty() ? "" : " ", one.parent < 0 ? "" : "split:", one.transports,
                        one.algorithm.empty() ? "" : ":" + one.algorithm, one.sealed ? ":sealed" : "");
  const std::string where = spec.processes > 1 ? fmt::format(" in {} processes", spec.processes) : "";
  return fmt::format("{} ranks{}, {}", spec.ranks, where, over);
}

}  // namespace

std::vector<tuttiUniqueId> makeIds(const Session& session) {
  const Draw draw(session.seed, session.variant);
  std::vector<tuttiUniqueId> ids;
  for (const auto& spec : draw.session().communicators) {
    ids.emplace_back();
    if (spec.parent < 0 && tuttiGetUniqueId(&ids.back()) != tuttiSuccess)
      fail(session, draw.session().ranks, -1, {0, -1, tuttiSystemError, tuttiGetLastError(nullptr)});
  }
  return ids;
}

void runProcess(const Session& session, const std::vector<tuttiUniqueId>& ids, int process) {
  const SessionSpec spec = Draw(session.seed, session.variant).session();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < spec.ranks; ++rank)
    if (spec.processOf(rank) == process) threads.emplace_back([&, rank] { runRank(session, ids, rank); });
  for (auto& thread : threads) thread.join();
  forgetFaultyNetworks();
}

std::string runSession(const Session& session) {
  const SessionSpec spec = Draw(session.seed, session.variant).session();
  if (spec.processes > 1)
    runApart(session, spec.processes);
  else
    runProcess(session, makeIds(session), 0);
  return describe(spec);
}

}  // namespace tutti::faults
