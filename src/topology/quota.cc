#include "topology/quota.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace tutti::topology {
namespace {

using Quota = std::optional<double>;

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

// Of a group and all above it. What the process is told of its path may begin above what it can see; the top it sees.
template <class Read>
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

}  // namespace

Quota processorQuota(const std::string& root) {
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
      take(least(mounts, path, readUnified));
      take(least(mounts + "/unified", path, readUnified));
    } else if (names(controllers, "cpu")) {
      take(least(mounts + "/cpu", path, readOld));
      take(least(fmt::format("{}/{}", mounts, controllers), path, readOld));
    }
  }
  return found;
}

}  // namespace tutti::topology
