#include "drawing/fabric.h"

#include <algorithm>
#include <limits>

#include "drawing/wires.h"

namespace tutti::drawing {
namespace {

using topology::DeviceKind;
using topology::Link;
using topology::LinkKind;
using topology::System;

constexpr double kNvSwitchWidth = 132, kNvSwitchHeight = 50, kNvSwitchGap = 14, kNvSwitchRowGap = 10;

bool shares(const std::vector<int>& a, const std::vector<int>& b) {
  return std::ranges::any_of(a, [&](int each) { return std::ranges::find(b, each) != b.end(); });
}

void addAll(std::vector<int>& to, const std::vector<int>& from) {
  for (const int each : from)
    if (std::ranges::find(to, each) == to.end()) to.push_back(each);
}

std::vector<int> gpusAt(const System& system, const Shown& shown, int nvswitch) {
  std::vector<int> gpus;
  for (const Link& link : system.links)
    if (link.kind == LinkKind::kNvLink && link.b == nvswitch && shown.inTree[link.a]) addAll(gpus, {link.a});
  return gpus;
}

// A switch may bring together what were two planes so far.
void add(std::vector<Plane>& planes, int nvswitch, const std::vector<int>& gpus) {
  Plane joined{{}, gpus, {}, {}};
  for (const Plane& one : planes)
    if (shares(one.gpus, gpus)) addAll(joined.switches, one.switches), addAll(joined.gpus, one.gpus);
  joined.switches.push_back(nvswitch);
  std::erase_if(planes, [&](const Plane& one) { return shares(one.gpus, joined.gpus); });
  planes.push_back(std::move(joined));
}

// Below its GPUs; in several rows where they are few and the switches many.
void place(Plane& plane, const Placing& placing) {
  double left = std::numeric_limits<double>::infinity(), right = 0;
  for (const int gpu : plane.gpus) {
    left = std::min(left, placing.boxes[gpu].x);
    right = std::max(right, placing.boxes[gpu].right());
  }
  right = std::max(right, left + kNvSwitchWidth + 2 * kNvSwitchGap);
  const size_t room =
      static_cast<size_t>(std::max(1.0, (right - left - kNvSwitchGap) / (kNvSwitchWidth + kNvSwitchGap)));
  const size_t perRow = std::min(room, plane.switches.size());
  const double each = (right - left) / static_cast<double>(perRow);
  const size_t rows = (plane.switches.size() + perRow - 1) / perRow;
  plane.bar = {left, 0, right - left,
               static_cast<double>(rows) * (kNvSwitchHeight + kNvSwitchRowGap) + kNvSwitchRowGap};
  for (size_t i = 0; i < plane.switches.size(); ++i)
    plane.boxes.push_back({left + each * (static_cast<double>(i % perRow) + 0.5) - kNvSwitchWidth / 2,
                           kNvSwitchRowGap + static_cast<double>(i / perRow) * (kNvSwitchHeight + kNvSwitchRowGap),
                           kNvSwitchWidth, kNvSwitchHeight});
}

// Planes whose GPUs are between each other's get bars below each other.
void stack(std::vector<Plane>& planes, double top) {
  constexpr double kBetween = 40;
  std::vector<Span> spans;
  double highest = 0;
  for (const Plane& plane : planes) {
    spans.push_back({plane.bar.x, plane.bar.right()});
    highest = std::max(highest, plane.bar.height);
  }
  const std::vector<int> rows = packed(spans);
  for (size_t i = 0; i < planes.size(); ++i) {
    const double down = top + rows[i] * (highest + kBetween);
    planes[i].bar.y += down;
    for (Box& box : planes[i].boxes) box.y += down;
  }
}

}  // namespace

std::vector<Plane> planesOf(const System& system, const Shown& shown, const Placing& placing, double top) {
  std::vector<Plane> planes;
  for (const int nvswitch : devicesOf(system, DeviceKind::kNvSwitch))
    if (const auto gpus = gpusAt(system, shown, nvswitch); shown.inFabric[nvswitch] && !gpus.empty())
      add(planes, nvswitch, gpus);
  for (Plane& plane : planes) place(plane, placing);
  stack(planes, top);
  return planes;
}

Bundle bundleOf(const System& system, int gpu, const Plane& plane) {
  Bundle bundle;
  for (const Link& link : system.links)
    if (link.kind == LinkKind::kNvLink && link.a == gpu &&
        std::ranges::find(plane.switches, link.b) != plane.switches.end()) {
      bundle.count += link.count;
      bundle.gigabytes += link.gigabytes;
    }
  return bundle;
}

}  // namespace tutti::drawing
