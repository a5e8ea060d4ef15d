#include "numbers.h"

#include "../../common/bus.h"

namespace tutti_torch {

// One that was aborted meanwhile has no more to say.
void addTo(Numbers& all, const Communicator& comm, const std::vector<int>& groupRanks) {
  tuttiCommStats_t now = {};
  now.size = sizeof now;
  std::vector<uint64_t> waits(groupRanks.size());
  if (comm.isGone() || tuttiCommGetStats(comm.get(), &now) != tuttiSuccess ||
      tuttiCommGetWaits(comm.get(), waits.data(), static_cast<int>(waits.size())) != tuttiSuccess)
    return;
  all["library_operations"] += static_cast<double>(now.operations);
  all["memory_bytes"] += static_cast<double>(now.memoryBytes);
  all.emplace("connected_peers", now.connectedPeers);  // of the first: that of the collectives
  all["seconds"] += static_cast<double>(now.nanoseconds) * 1e-9;
  for (size_t i = 0; i < waits.size(); ++i)
    if (waits[i] > 0)
      all[c10::str("wait_for_rank_", groupRanks[i], "_seconds")] += static_cast<double>(waits[i]) * 1e-9;
}

void addTo(Numbers& all, const std::map<std::string, Count>& counts, int ranks) {
  for (const auto& [name, count] : counts) {
    all[name + "_operations"] = static_cast<double>(count.operations);
    all[name + "_bytes"] = static_cast<double>(count.bytes);
    all[name + "_wait_seconds"] = count.waitSeconds;
    all["operations"] += static_cast<double>(count.operations);
    all["bytes"] += static_cast<double>(count.bytes);
    all["wait_seconds"] += count.waitSeconds;
    all["bus_bytes"] += static_cast<double>(count.bytes) * tutti::integrations::busFactor(name, ranks);
  }
  all["bus_bandwidth"] = all["seconds"] > 0 ? all["bus_bytes"] / all["seconds"] : 0;
}

}  // namespace tutti_torch
