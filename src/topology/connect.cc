// connect(): from devices to links.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/plain_text.h"
#include "topology/bus_id.h"
#include "topology/speeds.h"
#include "topology/system.h"

namespace tutti::topology {
namespace {

constexpr const char* kNvSwitchClass = "0x068000";
constexpr size_t kLongestText = 64;

void requireRoom(size_t count, size_t most, const char* what) {
  if (count > most)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a system may have {} {} at most: this one has more; leave some out", most, what));
}

class Connecting {
 public:
  explicit Connecting(System& system) : system_(system) {}
  void run();

 private:
  std::string name(int device) const { return nameOf(system_, device); }
  // The same with its bus id, by which some are named.
  std::string nameAndPlace(int device) const {
    const std::string busId = plainText(system_.devices[device].pci->busId, kLongestText);
    return name(device).find(busId) == std::string::npos ? fmt::format("{} ({})", name(device), busId) : name(device);
  }
  void remark(std::string text) { system_.remarks.push_back(std::move(text)); }
  void link(int a, int b, LinkKind kind, double gigabytes, int count = 1) {
    system_.links.push_back({a, b, kind, gigabytes, count});
  }
  void index(int device);
  void unsaid(int device);
  // Hosts of one file may have the same bus ids.
  std::string hostOf(int device) const {
    const int numa = numaOf(system_, device);
    return numa < 0 ? "" : system_.devices[numa].numa->host;
  }
  int find(const std::string& host, const std::string& busId) const;
  void up(int device);
  double pciBandwidth(int device);
  double portBandwidth(int device);
  void peers(int device);
  bool below(int device, int above) const;
  void nvlinks(int device);
  void nvlink(int device, const NvLinks& row, double each);
  int nvlinkTarget(int device, const NvLinks& row);
  int addNvSwitch(const std::string& host, const NvLinks& row);
  void c2c(int device);
  void sockets();
  double socketBandwidth(int device);

  System& system_;
  std::map<std::pair<std::string, uint64_t>, int> byBusId_;  // by host as well
};

void Connecting::index(int device) {
  const Device& one = system_.devices[device];
  if (!one.pci) return;
  const auto id = parseBusId(one.pci->busId);
  if (!id)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is no PCI bus id: write it as 0000:3b:00.0",
                                                         plainText(one.pci->busId, kLongestText)));
  if (!byBusId_.emplace(std::pair(hostOf(device), *id), device).second)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("two devices have the bus id {}: give each its own",
                                                         plainText(one.pci->busId, kLongestText)));
}

void Connecting::unsaid(int device) {
  const Device& one = system_.devices[device];
  if (!one.pci) return;
  const std::string busId = plainText(one.pci->busId, kLongestText);
  if ((one.kind == DeviceKind::kGpu && !one.gpu) || (one.kind == DeviceKind::kNic && !one.nic))
    remark(fmt::format("{}: nothing is said of it but its place on the bus", busId));
  if (one.kind == DeviceKind::kPci && one.pci->classCode.empty())
    remark(fmt::format("{}: no class; it is taken for a switch", busId));
}

int Connecting::find(const std::string& host, const std::string& busId) const {
  const auto id = parseBusId(busId);
  const auto found = id ? byBusId_.find({host, *id}) : byBusId_.end();
  return found == byBusId_.end() ? -1 : found->second;
}

double Connecting::pciBandwidth(int device) {
  const Pci& pci = *system_.devices[device].pci;
  int width = pci.width;
  if (width == 0) {
    width = kAssumedWidth;
    remark(fmt::format("{}: no link_width; x{} is assumed", nameAndPlace(device), width));
  }
  if (pci.speed.empty()) {
    remark(fmt::format("{}: no link_speed; {} GT/s is assumed", nameAndPlace(device), kAssumedTransfers));
    return *pciGigabytes(kAssumedTransfers, width);
  }
  const auto transfers = transfersOf(pci.speed);
  const auto bandwidth = transfers ? pciGigabytes(*transfers, width) : std::nullopt;
  if (bandwidth) return *bandwidth;
  remark(fmt::format("{}: \"{}\" is no speed of a PCI link; {} GT/s is assumed", nameAndPlace(device),
                     plainText(pci.speed, kLongestText), kAssumedTransfers));
  return *pciGigabytes(kAssumedTransfers, width);
}

double Connecting::portBandwidth(int device) {
  const Port& port = *system_.devices[device].port;
  if (port.megabits > 0) return networkGigabytes(port.megabits);
  remark(fmt::format("{}: no network speed; {} Mbit/s is assumed", name(device), kAssumedMegabits));
  return networkGigabytes(kAssumedMegabits);
}

// The link to the device above.
void Connecting::up(int device) {
  const Device& one = system_.devices[device];
  if (one.parent < 0) return;
  if (one.kind == DeviceKind::kPort) return link(one.parent, device, LinkKind::kInternal, portBandwidth(device));
  if (!one.pci) return link(one.parent, device, LinkKind::kInternal, kInternalGigabytes);
  link(one.parent, device, LinkKind::kPci, pciBandwidth(device));
}

bool Connecting::below(int device, int above) const {
  while (device >= 0 && device != above) device = system_.devices[device].parent;
  return device == above;
}

// Switches that are linked beside the tree; both may say so, or one.
void Connecting::peers(int device) {
  if (!system_.devices[device].pci) return;
  for (const auto& [busId, extras] : system_.devices[device].pci->peers) {
    const int peer = find(hostOf(device), busId);
    if (peer < 0) {
      remark(
          fmt::format("{}: its pcilink leads to {}, which is not there", name(device), plainText(busId, kLongestText)));
      continue;
    }
    if (below(device, peer) || below(peer, device))
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("the pcilink of {} to {} closes a circle with the tree: name another switch",
                              name(device), name(peer)));
    const auto same = [&](const Link& one) {
      return std::minmax(one.a, one.b) == std::minmax(device, peer) && one.kind == LinkKind::kPci;
    };
    if (std::none_of(system_.links.begin(), system_.links.end(), same))
      link(device, peer, LinkKind::kPci, kInternalGigabytes);
  }
}

int Connecting::addNvSwitch(const std::string& host, const NvLinks& row) {
  requireRoom(system_.devices.size() + 1, kMostDevices, "devices");
  Device added;
  added.kind = DeviceKind::kNvSwitch;
  added.pci.emplace();
  added.pci->busId = row.target;
  added.pci->classCode = kNvSwitchClass;
  system_.devices.push_back(added);
  const int device = static_cast<int>(system_.devices.size()) - 1;
  byBusId_.emplace(std::pair(host, *parseBusId(row.target)), device);
  return device;
}

// -1 where it leads to nothing that is known.
int Connecting::nvlinkTarget(int device, const NvLinks& row) {
  // A fabric that is hidden may be that of a rack: all hosts share it.
  const std::string host = isHiddenFabric(row.target) ? "" : hostOf(device);
  const int found = find(host, row.target);
  if (found == device) {
    remark(fmt::format("{}: its NVLinks lead to itself; they are not counted", name(device)));
    return -1;
  }
  if (found >= 0) {
    const DeviceKind kind = system_.devices[found].kind;
    if (kind == DeviceKind::kGpu || kind == DeviceKind::kNvSwitch) return found;
    remark(fmt::format("{}: its NVLinks lead to {}, which has none; they are not counted", name(device), name(found)));
    return -1;
  }
  if (isHiddenFabric(row.target) || (row.targetClass == kNvSwitchClass && parseBusId(row.target)))
    return addNvSwitch(host, row);
  remark(fmt::format("{}: its NVLinks lead to {}, which is not there; they are not counted", name(device),
                     plainText(row.target, kLongestText)));
  return -1;
}

// Both GPUs of a pair say so: it is one link, of the lesser count if they differ.
void Connecting::nvlink(int device, const NvLinks& row, double each) {
  const int target = nvlinkTarget(device, row);
  if (target < 0) return;
  for (Link& one : system_.links)
    if (one.kind == LinkKind::kNvLink && one.a == target && one.b == device) {
      if (one.count != row.count)
        remark(fmt::format("{} has {} NVLinks to {}, which has {} back; the lesser number counts", name(device),
                           row.count, name(target), one.count));
      one.count = std::min(one.count, row.count);
      one.gigabytes = std::min(one.gigabytes, row.count * each);
      return;
    }
  link(device, target, LinkKind::kNvLink, row.count * each, row.count);
}

void Connecting::nvlinks(int device) {
  if (!system_.devices[device].gpu || system_.devices[device].gpu->nvlinks.empty()) return;
  const Gpu gpu = *system_.devices[device].gpu;  // a copy: new NVSwitches move the devices
  if (gpu.sm == 0) remark(fmt::format("{}: no sm; its NVLinks are taken for those of sm {}", name(device), kAssumedSm));
  const double each = nvlinkGigabytes(gpu.sm > 0 ? gpu.sm : kAssumedSm);
  for (const NvLinks& row : gpu.nvlinks) nvlink(device, row, each);
}

void Connecting::c2c(int device) {
  if (!system_.devices[device].gpu) return;
  const int numa = numaOf(system_, device);
  for (const C2c& row : system_.devices[device].gpu->c2c)
    if (numa >= 0) link(numa, device, LinkKind::kC2c, 1e-3 * row.megabytesPerSecond * row.count, row.count);
}

double Connecting::socketBandwidth(int device) {
  constexpr double kAssumed = 6;
  const auto known = socketGigabytes(*system_.devices[device].numa);
  if (!known) remark(fmt::format("{}: unknown processor; {} GB/s between nodes are assumed", name(device), kAssumed));
  return known.value_or(kAssumed);
}

// Every memory node with every other of its host.
void Connecting::sockets() {
  const std::vector<int> nodes = devicesOf(system_, DeviceKind::kNuma);
  if (nodes.size() < 2) return;
  std::vector<double> bandwidths;
  for (const int node : nodes) bandwidths.push_back(socketBandwidth(node));
  for (size_t i = 0; i < nodes.size(); ++i)
    for (size_t j = i + 1; j < nodes.size(); ++j)
      if (system_.devices[nodes[i]].numa->host == system_.devices[nodes[j]].numa->host)
        link(nodes[i], nodes[j], LinkKind::kSockets, std::min(bandwidths[i], bandwidths[j]));
}

void Connecting::run() {
  const int count = static_cast<int>(system_.devices.size());
  requireRoom(system_.devices.size(), kMostDevices, "devices");
  requireRoom(devicesOf(system_, DeviceKind::kNuma).size(), kMostNumaNodes, "memory nodes");
  for (int i = 0; i < count; ++i) index(i);
  for (int i = 0; i < count; ++i) unsaid(i);
  for (int i = 0; i < count; ++i) up(i);
  for (int i = 0; i < count; ++i) peers(i);
  for (int i = 0; i < count; ++i) nvlinks(i);
  for (int i = 0; i < count; ++i) c2c(i);
  sockets();
}

}  // namespace

void connect(System& system) { Connecting(system).run(); }

}  // namespace tutti::topology
