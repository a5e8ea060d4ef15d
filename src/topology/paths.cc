#include "topology/paths.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

#include "topology/bus_id.h"
#include "topology/speeds.h"

namespace tutti::topology {
namespace {

constexpr std::string_view kNames[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "PXN", "PHB", "SYS", "NET", "DIS"};

bool better(const Path& a, const Path& b) {
  return std::tuple(a.type, -a.gigabytes, a.hops) < std::tuple(b.type, -b.gigabytes, b.hops);
}

struct Arrow {
  int to;
  LinkKind kind;
  double gigabytes;
};

// What every way takes but NVLinks, which only GPUs use among themselves. The last node is the network, which all ports
// lead to.
class Tree {
 public:
  explicit Tree(const System& system);
  std::vector<Path> from(int source) const;

 private:
  void join(int a, int b, LinkKind kind, double gigabytes) {
    arrows_[a].push_back({b, kind, gigabytes});
    arrows_[b].push_back({a, kind, gigabytes});
  }
  bool ends(int device) const;
  PathType typeOf(int from, const Arrow& arrow) const;

  const System& system_;
  std::vector<std::vector<Arrow>> arrows_;
};

Tree::Tree(const System& system) : system_(system), arrows_(system.devices.size() + 1) {
  const int network = static_cast<int>(system.devices.size());
  for (const Link& link : system.links)
    if (link.kind != LinkKind::kNvLink) join(link.a, link.b, link.kind, link.gigabytes);
  for (const int port : devicesOf(system, DeviceKind::kPort))
    join(port, network, LinkKind::kNetwork, std::numeric_limits<double>::infinity());
}

// Whether no way goes through a device: it may begin and end there.
bool Tree::ends(int device) const {
  return static_cast<size_t>(device) < system_.devices.size() && system_.devices[device].kind == DeviceKind::kGpu;
}

// What a link makes of a path at least.
PathType Tree::typeOf(int from, const Arrow& arrow) const {
  switch (arrow.kind) {
    case LinkKind::kInternal:
    case LinkKind::kNvLink:
      break;
    case LinkKind::kC2c:
      return PathType::kC2c;
    case LinkKind::kSockets:
      return PathType::kSockets;
    case LinkKind::kNetwork:
      return PathType::kNetwork;
    case LinkKind::kPci: {
      const DeviceKind a = system_.devices[from].kind, b = system_.devices[arrow.to].kind;
      if (a == DeviceKind::kNuma || b == DeviceKind::kNuma) return PathType::kHost;
      return a == DeviceKind::kPci && b == DeviceKind::kPci ? PathType::kSwitches : PathType::kSwitch;
    }
  }
  // A NIC that a file has directly below a memory node is at the processor all the same.
  const bool port =
      static_cast<size_t>(arrow.to) < system_.devices.size() &&
      (system_.devices[arrow.to].kind == DeviceKind::kPort || system_.devices[from].kind == DeviceKind::kPort);
  return port ? PathType::kLocal : PathType::kHost;
}

// Dijkstra's, by the order of better(): a link never makes a path better.
std::vector<Path> Tree::from(int source) const {
  using Entry = std::pair<Path, int>;
  const auto later = [](const Entry& a, const Entry& b) { return better(b.first, a.first); };
  std::priority_queue<Entry, std::vector<Entry>, decltype(later)> open(later);
  std::vector<Path> best(arrows_.size());
  best[source] = {PathType::kLocal, std::numeric_limits<double>::infinity(), 0};
  open.emplace(best[source], source);
  while (!open.empty()) {
    const auto [path, here] = open.top();
    open.pop();
    if (better(best[here], path) || (ends(here) && here != source)) continue;
    for (const Arrow& arrow : arrows_[here]) {
      const Path longer{std::max(path.type, typeOf(here, arrow)), std::min(path.gigabytes, arrow.gigabytes),
                        path.hops + 1};
      if (!better(longer, best[arrow.to])) continue;
      best[arrow.to] = longer;
      open.emplace(longer, arrow.to);
    }
  }
  return best;
}

// Which plane of NVSwitches a link leads to: that of its host, or a hidden one, which hosts may share.
std::string planeOf(const System& system, const Link& link) {
  const int numa = numaOf(system, link.a);
  if (numa < 0 || isHiddenFabric(system.devices[link.b].pci->busId)) return "";
  return "of " + system.devices[numa].numa->host;
}

// NVLinks of each GPU: to other GPUs, and to the NVSwitches, which are one plane that reaches all who are at it.
class Fabric {
 public:
  explicit Fabric(const System& system);
  Path between(int a, int b) const;

 private:
  Path direct(int a, int b) const;

  size_t count_;
  std::vector<int> gpus_;
  std::vector<int> rows_;                     // of each device, its position among the GPUs
  std::vector<double> direct_;                // of each pair of GPUs
  std::vector<double> plane_;                 // of each device
  std::vector<std::string> planes_;           // of each device
  std::vector<std::vector<int>> neighbours_;  // of each device, the GPUs it is linked with
};

Fabric::Fabric(const System& system)
    : count_(system.devices.size()),
      gpus_(devicesOf(system, DeviceKind::kGpu)),
      rows_(count_, -1),
      direct_(gpus_.size() * gpus_.size()),
      plane_(count_),
      planes_(count_),
      neighbours_(count_) {
  for (size_t i = 0; i < gpus_.size(); ++i) rows_[gpus_[i]] = static_cast<int>(i);
  for (const Link& link : system.links) {
    if (link.kind != LinkKind::kNvLink) continue;
    if (system.devices[link.b].kind == DeviceKind::kNvSwitch) {
      plane_[link.a] += link.gigabytes;
      planes_[link.a] = planeOf(system, link);
      continue;
    }
    neighbours_[link.a].push_back(link.b);
    neighbours_[link.b].push_back(link.a);
    direct_[rows_[link.a] * gpus_.size() + rows_[link.b]] += link.gigabytes;
    direct_[rows_[link.b] * gpus_.size() + rows_[link.a]] += link.gigabytes;
  }
}

Path Fabric::direct(int a, int b) const {
  const double own = direct_[rows_[a] * gpus_.size() + rows_[b]],
               through = planes_[a] == planes_[b] ? std::min(plane_[a], plane_[b]) : 0;
  const Path straight = own > 0 ? Path{PathType::kNvLink, own, 1} : Path{};
  const Path switched = through > 0 ? Path{PathType::kNvLink, through, 2} : Path{};
  return better(switched, straight) ? switched : straight;
}

Path Fabric::between(int a, int b) const {
  Path best = direct(a, b);
  if (best.type == PathType::kNvLink) return best;
  // Both on one plane reach each other without a relay; who is on none has no relays but those it is linked with.
  for (const int relay : neighbours_[plane_[a] > 0 ? b : a]) {
    if (relay == a || relay == b) continue;
    const Path first = direct(a, relay), second = direct(relay, b);
    if (first.type != PathType::kNvLink || second.type != PathType::kNvLink) continue;
    const Path relayed{PathType::kNvLinkRelayed, std::min(first.gigabytes, second.gigabytes), first.hops + second.hops};
    if (better(relayed, best)) best = relayed;
  }
  return best;
}

// From a GPU to a NIC or port by way of another GPU, that has both near.
Path relayed(const Paths& paths, const std::vector<int>& gpus, int gpu, int end) {
  Path best;
  for (const int relay : gpus) {
    const Path &first = paths.between(gpu, relay), &second = paths.between(relay, end);
    if (first.type != PathType::kNvLink || second.type > PathType::kSwitches) continue;
    const Path through{PathType::kRelayed, std::min(first.gigabytes, second.gigabytes), first.hops + second.hops};
    if (better(through, best)) best = through;
  }
  return best;
}

}  // namespace

std::string_view nameOf(PathType type) { return kNames[static_cast<size_t>(type)]; }

Paths::Paths(const System& system) : count_(system.devices.size()), paths_(count_ * count_) {
  const Tree tree(system);
  const Fabric fabric(system);
  for (size_t i = 0; i < count_; ++i) {
    const std::vector<Path> best = tree.from(static_cast<int>(i));
    std::copy_n(best.begin(), count_, paths_.begin() + static_cast<ptrdiff_t>(i * count_));
    at(static_cast<int>(i), static_cast<int>(i)) = {PathType::kLocal, kInternalGigabytes, 0};
  }
  const std::vector<int> gpus = devicesOf(system, DeviceKind::kGpu);
  for (const int a : gpus)
    for (const int b : gpus)
      if (const Path path = fabric.between(a, b); a != b && better(path, at(a, b))) at(a, b) = path;
  for (const Link& link : system.links)
    if (link.kind == LinkKind::kNvLink && system.devices[link.b].kind == DeviceKind::kNvSwitch)
      at(link.a, link.b) = at(link.b, link.a) = {PathType::kNvLink, link.gigabytes, 1};
  for (const DeviceKind kind : {DeviceKind::kNic, DeviceKind::kPort})
    for (const int end : devicesOf(system, kind))
      for (const int gpu : gpus)
        if (const Path path = relayed(*this, gpus, gpu, end); better(path, at(gpu, end)))
          at(gpu, end) = at(end, gpu) = path;
}

}  // namespace tutti::topology
