#include "detect/hwloc_machine.h"

#include <hwloc.h>

#include <memory>
#include <mutex>

#include "base/error.h"
#include "topology/hwloc_handle.h"

namespace tutti::detect {
namespace {

// Plug-ins that ask GPUs' runtimes, which would take memory on each GPU and time; and libpciaccess, which leaks: what
// hwloc reads from /sys by itself is enough.
constexpr const char* kUnwanted[] = {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl", "pci"};

topology::HwlocTopology load() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  topology::HwlocTopology topology(raw);
  for (const char* const one : kUnwanted)
    hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, one);
  // All bridges: the way from a device to the processor says through which switches it goes.
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_BRIDGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  return hwloc_topology_load(raw) == 0 ? std::move(topology) : nullptr;
}

}  // namespace

std::string hwlocXmlOfThisMachine() {
  const std::lock_guard lock(topology::inHwloc);
  const topology::HwlocTopology topology = load();
  char* text = nullptr;
  int length = 0;
  if (topology == nullptr || hwloc_topology_export_xmlbuffer(topology.get(), &text, &length, 0) != 0)
    throw Error(ErrorCode::kSystem, "hwloc cannot describe this machine: is /sys mounted?");
  const auto free = [&](char* buffer) { hwloc_free_xmlbuffer(topology.get(), buffer); };
  const std::unique_ptr<char, decltype(free)> owned(text, free);
  return text;
}

}  // namespace tutti::detect
