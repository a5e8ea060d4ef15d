#include "rings/routes.h"

#include <algorithm>

namespace tutti::rings {

using topology::DeviceKind;
using topology::Link;
using topology::LinkKind;
using topology::Path;
using topology::PathType;

Routes::Routes(const topology::System& system, const topology::Paths& paths)
    : system_(system), paths_(paths), toSwitches_(system.devices.size()) {
  for (const Link& link : system.links)
    if (link.kind == LinkKind::kNvLink && system.devices[link.b].kind == DeviceKind::kNvSwitch)
      toSwitches_[link.a] += link.gigabytes;
}

uint32_t Routes::number(Way way, int a, int b, double gigabytes) {
  const uint64_t key = (static_cast<uint64_t>(way) << 56) | (static_cast<uint64_t>(a + 1) << 28) |
                       static_cast<uint64_t>(b + 1);  // a system has 1024 devices at most
  const auto [found, fresh] = numbers_.emplace(key, static_cast<uint32_t>(capacities_.size()));
  if (fresh) capacities_.push_back(gigabytes);
  return found->second;
}

double Routes::linkOf(int a, int b, LinkKind kind) const {
  double sum = 0;
  for (const Link& link : system_.links)
    if (link.kind == kind && std::minmax(link.a, link.b) == std::minmax(a, b)) sum += link.gigabytes;
  return sum;
}

// To the device above, whatever kind of link that is.
double Routes::linkUp(int device) const {
  const int parent = system_.devices[device].parent;
  return std::max({linkOf(device, parent, LinkKind::kPci), linkOf(device, parent, LinkKind::kInternal),
                   linkOf(device, parent, LinkKind::kC2c)});
}

void Routes::overNvLink(Route& route, int from, int to) {
  if (const double own = linkOf(from, to, LinkKind::kNvLink); own > 0) {
    route.push_back(number(Way::kDirect, from, to, own));
    return;
  }
  route.push_back(number(Way::kToSwitches, from, -1, toSwitches_[from]));
  route.push_back(number(Way::kFromSwitches, to, -1, toSwitches_[to]));
}

// The GPU in between of a path that has one: the one by which the path is as good as it is.
int Routes::relayOf(int from, int to) const {
  int best = -1;
  double bestGigabytes = 0;
  for (const int relay : devicesOf(system_, DeviceKind::kGpu)) {
    const Path &first = paths_.between(from, relay), &second = paths_.between(relay, to);
    const bool fits = gpuAt(to) ? second.type == PathType::kNvLink : second.type <= PathType::kSwitches;
    const double gigabytes = std::min(first.gigabytes, second.gigabytes);
    if (relay == from || first.type != PathType::kNvLink || !fits || gigabytes <= bestGigabytes) continue;
    best = relay, bestGigabytes = gigabytes;
  }
  return best;
}

void Routes::climb(Route& route, Way way, int from, int above) {
  for (int device = from; device != above; device = system_.devices[device].parent)
    route.push_back(number(way, device, -1, linkUp(device)));
}

// Up to where the two meet, and down again; false where they do not.
bool Routes::alongTheTree(Route& route, int from, int to) {
  const auto linesOf = [&](int device) {
    std::vector<int> line{device};
    while (system_.devices[line.back()].parent >= 0) line.push_back(system_.devices[line.back()].parent);
    return line;
  };
  const std::vector<int> ups = linesOf(from), downs = linesOf(to);
  const auto meeting = std::ranges::find_first_of(ups, downs);
  if (meeting != ups.end()) {
    climb(route, Way::kUp, from, *meeting);
    climb(route, Way::kDown, to, *meeting);
    return true;
  }
  const double sockets = linkOf(ups.back(), downs.back(), LinkKind::kSockets);
  if (sockets <= 0) return false;
  climb(route, Way::kUp, from, ups.back());
  route.push_back(number(Way::kSockets, ups.back(), downs.back(), sockets));
  climb(route, Way::kDown, to, downs.back());
  return true;
}

Route Routes::between(int from, int to) {
  Route route;
  const PathType type = paths_.between(from, to).type;
  if (from == to || type >= PathType::kNetwork) return route;
  if (type == PathType::kNvLink) {
    overNvLink(route, from, to);
  } else if (type == PathType::kNvLinkRelayed || type == PathType::kRelayed) {
    relayed(route, from, to);
  } else if (!alongTheTree(route, from, to)) {
    route.clear();
  }
  return route;
}

void Routes::relayed(Route& route, int from, int to) {
  const int relay = gpuAt(from) ? relayOf(from, to) : relayOf(to, from);
  if (relay < 0) return;
  const Route first = between(from, relay), second = between(relay, to);
  if (first.empty() || second.empty()) return;
  route = first;
  route.insert(route.end(), second.begin(), second.end());
}

}  // namespace tutti::rings
