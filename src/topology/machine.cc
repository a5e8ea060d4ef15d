#include "topology/machine.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "topology/hwloc_handle.h"

namespace tutti::topology {
namespace {

// Devices and their firmware tables are most of what loading costs, and nobody asks for them here; on caches hang
// memory nodes. The processor itself is not asked: hwloc would move this thread to every core in turn, and wait there
// behind all other ranks that start now, for what the system says as well.
HwlocTopology newTopology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  HwlocTopology topology(raw);
  hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  for (hwloc_obj_type_t type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_CORE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE}) {
    hwloc_topology_set_type_filter(raw, type, HWLOC_TYPE_FILTER_KEEP_ALL);
  }
  return topology;
}

std::vector<int> numbersOf(hwloc_const_cpuset_t set) {
  std::vector<int> numbers;
  if (set == nullptr) return numbers;
  for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i)) numbers.push_back(i);
  return numbers;
}

std::vector<MemoryNode> nodesOf(hwloc_topology_t topology) {
  std::vector<MemoryNode> nodes;
  std::vector<bool> seen;
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    // Memory without cores, and a second kind of memory beside the same cores (HBM, CXL), are no place to run.
    MemoryNode found{static_cast<int>(node->os_index), node->attr->numanode.local_memory, {}};
    for (int core : numbersOf(node->cpuset)) {
      if (static_cast<size_t>(core) >= seen.size()) seen.resize(static_cast<size_t>(core) + 1);
      if (!seen[static_cast<size_t>(core)]) found.cores.push_back(core);
      seen[static_cast<size_t>(core)] = true;
    }
    if (!found.cores.empty()) nodes.push_back(std::move(found));
  }
  return nodes;
}

size_t coresIn(const std::vector<MemoryNode>& nodes) {
  size_t sum = 0;
  for (const MemoryNode& node : nodes) sum += node.cores.size();
  return sum;
}

// The system's own answer, when hwloc has none.
std::vector<int> affinityMask() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set)) cores.push_back(i);
    }
  }
  for (unsigned i = 0; cores.empty() && i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    cores.push_back(static_cast<int>(i));
  }
  return cores;
}

HostMachine machineOf(hwloc_topology_t topology) {
  HostMachine machine;
  machine.cores = numbersOf(hwloc_topology_get_allowed_cpuset(topology));
  if (machine.cores.empty()) return machine;
  machine.physicalCores = std::max(1, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE));
  machine.nodes = nodesOf(topology);
  return machine;
}

// Restricts what was loaded to the cores that this process is bound to.
HostMachine detected() {
  const std::lock_guard lock(inHwloc);
  const HwlocTopology topology = newTopology();
  if (topology == nullptr || hwloc_topology_load(topology.get()) != 0) return {};
  const std::unique_ptr<hwloc_bitmap_s, void (*)(hwloc_bitmap_t)> bound(hwloc_bitmap_alloc(), hwloc_bitmap_free);
  if (bound != nullptr && hwloc_get_cpubind(topology.get(), bound.get(), HWLOC_CPUBIND_THREAD) == 0) {
    hwloc_topology_restrict(topology.get(), bound.get(), 0);
  }
  return machineOf(topology.get());
}

void fillGaps(HostMachine& machine) {
  if (machine.cores.empty()) {
    machine.cores = affinityMask();
    machine.physicalCores = static_cast<int>(machine.cores.size());
  }
  if (coresIn(machine.nodes) != machine.cores.size()) machine.nodes = {{0, 0, machine.cores}};
}

// "0-3,8": what the kernel's lists look like. Numbers that are none end it.
std::vector<std::pair<int, int>> rangesIn(const std::string& path) {
  std::vector<std::pair<int, int>> ranges;
  std::ifstream file(path);
  for (int first = 0; file >> first;) {
    int last = first;
    if (file.peek() == '-' && !(file.ignore() >> last)) break;
    ranges.emplace_back(first, last);
    if (file.peek() != ',') break;
    file.ignore();
  }
  return ranges;
}

bool holdsOneOf(const std::vector<int>& cores, int node) {
  const auto ranges = rangesIn(fmt::format("/sys/devices/system/node/node{}/cpulist", node));
  return std::ranges::any_of(ranges, [&](const auto& range) {
    return std::ranges::any_of(cores, [&](int core) { return range.first <= core && core <= range.second; });
  });
}

}  // namespace

OwnCores ownCores() {
  std::vector<int> cores = affinityMask();
  std::vector<int> nodes;
  for (const auto& [first, last] : rangesIn("/sys/devices/system/node/has_cpu"))
    for (int node = first; node <= last; ++node)
      if (holdsOneOf(cores, node)) nodes.push_back(node);
  return {std::move(cores), nodes.empty() ? 0 : nodes.size() == 1 ? nodes.front() : -1};
}

HostMachine detectMachine() {
  HostMachine machine = detected();
  fillGaps(machine);
  return machine;
}

HostMachine describeMachine(const std::string& synthetic) {
  const std::lock_guard lock(inHwloc);
  const HwlocTopology topology = newTopology();
  if (topology == nullptr || hwloc_topology_set_synthetic(topology.get(), synthetic.c_str()) != 0 ||
      hwloc_topology_load(topology.get()) != 0) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("'{}' describes no machine; write it as hwloc does, such as 'numa:2 core:4 pu:2'", synthetic));
  }
  HostMachine machine = machineOf(topology.get());
  fillGaps(machine);
  return machine;
}

}  // namespace tutti::topology
