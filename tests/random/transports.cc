// Takes the place of transports/builtin.cc in this program.
#include "random/transports.h"

#include <map>
#include <memory>
#include <mutex>

#include "faults/support/values.h"
#include "link/registry.h"
#include "support/faulty_loopback.h"
#include "transports/p2p/p2p.h"
#include "transports/shm/shm.h"
#include "transports/tcp/tcp.h"

namespace tutti::faults {
namespace {

std::mutex mutex;
std::map<uint64_t, std::shared_ptr<test::FaultyNetwork>> networks;
thread_local std::shared_ptr<test::FaultyNetwork> network;
thread_local test::FaultPlan plan;

}  // namespace

void useFaultyNetwork(uint64_t key, uint64_t seed) {
  constexpr uint32_t kPieces[] = {1'000'000, 30'000, 8'000, 2'000};
  plan.seed = seed;
  plan.latePercent = static_cast<uint32_t>(mix(seed, 1) % 60);
  plan.pieceBytes = kPieces[mix(seed, 2) % 4];
  const std::lock_guard lock(mutex);
  auto& shared = networks[key];
  if (!shared) shared = std::make_shared<test::FaultyNetwork>();
  network = shared;
}

void forgetFaultyNetworks() {
  const std::lock_guard lock(mutex);
  networks.clear();
}

}  // namespace tutti::faults

namespace tutti::link {

Registry builtinTransports(std::string_view list, const TransportSettings&) {
  Registry registry;
  registry.add(transports::makeP2p());
  registry.add(transports::makeShm());
  registry.add(transports::makeTcp());
  if (faults::network) registry.add(test::makeFaulty(faults::network, faults::plan));
  if (!list.empty()) registry.narrow(list);
  return registry;
}

}  // namespace tutti::link
