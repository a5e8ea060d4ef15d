#include "topology/quota.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace tutti::topology {
namespace {

using Quota = std::optional<double>;
using Read = Quota (*)(const std::string& group);

Quota share(double granted, double period) {
  return granted > 0 && period > 0 ? Quota(granted / period) : std::nullopt;
}

// "150000 100000", or "max 100000".
Quota readUnified(const std::string& group) {
  double granted = 0, period = 0;
  std::ifstream file(group + "/cpu.max");
  return file >> granted >> period ? share(granted, period) : std::nullopt;
}

// -1 where there is no limit.
Quota readOld(const std::string& group) {
  double granted = 0, period = 0;
  std::ifstream(group + "/cpu.cfs_quota_us") >> granted;
  std::ifstream(group + "/cpu.cfs_period_us") >> period;
  return share(granted, period);
}

// A number, or "max".
Quota readMemory(const std::string& group) {
  double bytes = 0;
  std::ifstream file(group + "/memory.max");
  return file >> bytes ? Quota(bytes) : std::nullopt;
}

// Where there is no limit it is more than there can be.
Quota readOldMemory(const std::string& group) {
  constexpr double kNone = 1ull << 60;
  double bytes = 0;
  std::ifstream file(group + "/memory.limit_in_bytes");
  return file >> bytes && bytes < kNone ? Quota(bytes) : std::nullopt;
}

// Of a group and all above it. What the process is told of its path may begin above what it can see; the top it sees.
Quota least(const std::string& mount, std::string path, Read read) {
  Quota found;
  for (;;) {
    if (const Quota here = read(mount + path)) found = std::min(found.value_or(*here), *here);
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos || path == "/") return found;
    path.erase(slash);
  }
}

bool names(const std::string& list, const std::string& controller) {
  return ("," + list + ",").find("," + controller + ",") != std::string::npos;
}

// As the controller of that name is read in groups of the unified tree, and of those before it.
Quota leastOf(const std::string& root, const std::string& controller, Read unified, Read old) {
  const std::string mounts = root + "/sys/fs/cgroup";
  Quota found;
  const auto take = [&](const Quota& quota) {
    if (quota) found = std::min(found.value_or(*quota), *quota);
  };
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // number:controllers:path
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) {
      take(least(mounts, path, unified));
      take(least(mounts + "/unified", path, unified));
    } else if (names(controllers, controller)) {
      take(least(fmt::format("{}/{}", mounts, controller), path, old));
      take(least(fmt::format("{}/{}", mounts, controllers), path, old));
    }
  }
  return found;
}

}  // namespace

Quota processorQuota(const std::string& root) { return leastOf(root, "cpu", readUnified, readOld); }

std::optional<uint64_t> memoryQuota(const std::string& root) {
  const Quota bytes = leastOf(root, "memory", readMemory, readOldMemory);
  return bytes ? std::optional(static_cast<uint64_t>(*bytes)) : std::nullopt;
}

}  // namespace tutti::topology
