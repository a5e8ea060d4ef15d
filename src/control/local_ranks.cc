#include "control/local_ranks.h"

#include <map>

#include "process/process_object.h"

namespace tutti::control {
namespace {

struct Tables {
  std::mutex mutex;  // guards what follows
  std::map<Digest, std::weak_ptr<LocalRanks>> ranks;
};

}  // namespace

std::shared_ptr<LocalRanks> LocalRanks::of(const Digest& table) {
  auto& tables = ofThisProcess<Tables>();
  const std::lock_guard lock(tables.mutex);
  std::erase_if(tables.ranks, [](const auto& entry) { return entry.second.expired(); });
  auto& known = tables.ranks[table];
  auto ranks = known.lock();
  if (!ranks) known = ranks = std::make_shared<LocalRanks>();
  return ranks;
}

void LocalRanks::add(int rank) {
  const std::lock_guard lock(mutex_);
  ranks_.insert(rank);
}

bool LocalRanks::has(int rank) const {
  const std::lock_guard lock(mutex_);
  return ranks_.contains(rank);
}

}  // namespace tutti::control
