#include "drawing/nvlinks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "drawing/labels.h"
#include "topology/bus_id.h"

namespace tutti::drawing {
namespace {

using topology::DeviceKind;
using topology::Link;
using topology::LinkKind;
using topology::System;

// The more links, the thicker.
void setWidth(Node path, int count) {
  const std::string width = fmt::format("stroke-width:{}px", number(std::min(1.5 + 0.4 * count, 7.0)));
  path.append_attribute("style").set_value(width.c_str());
}

std::string countText(int count) { return fmt::format("{} NVLink{}", count, count == 1 ? "" : "s"); }

std::string directText(const Link& link, double room) {
  const std::string whole = fmt::format("{}, {:.4g} GB/s", countText(link.count), link.gigabytes);
  return lengthOnWire(whole) + 8 < room ? whole : fmt::to_string(link.count);
}

std::string bundleTip(const System& system, int gpu, int other, int count, double gigabytes) {
  return fmt::format("{} to {}: {}, {:.4g} GB/s", nameOf(system, gpu), nameOf(system, other), countText(count),
                     gigabytes);
}

// Of those GPUs that are shown: all equal, or the numbers differ.
std::string perGpuText(const System& system, int nvswitch) {
  std::set<int> counts;
  for (const Link& link : system.links)
    if (link.kind == LinkKind::kNvLink && link.b == nvswitch) counts.insert(link.count);
  return counts.size() == 1 ? fmt::format("{}, {} a GPU", countText(nvlinksOf(system, nvswitch)), *counts.begin())
                            : countText(nvlinksOf(system, nvswitch));
}

void drawNvSwitch(Node in, const System& system, int nvswitch, const Box& box) {
  const topology::Pci& pci = *system.devices[nvswitch].pci;
  Node own = group(in, "device", fmt::format("{}  {}", nameOf(system, nvswitch), perGpuText(system, nvswitch)));
  rectangle(own, box, "nvswitch");
  std::vector<std::string> lines = boxLines(system, nvswitch);
  if (topology::isHiddenFabric(pci.busId)) lines = {nameOf(system, nvswitch)};
  lines.push_back(perGpuText(system, nvswitch));
  writeLines(own, box, lines);
}

void drawBundle(Node in, const System& system, int gpu, const Plane& plane, const Placing& placing) {
  const Bundle bundle = bundleOf(system, gpu, plane);
  const Box& box = placing.boxes[gpu];
  Node own = group(in, "bundle", bundleTip(system, gpu, plane.switches[0], bundle.count, bundle.gigabytes));
  const double x = box.middle();
  setWidth(line(own, fmt::format("M{} {}V{}", number(x), number(box.bottom()), number(plane.bar.y)), "nvlink"),
           bundle.count);
  write(own, {x + 8, plane.bar.y - 20}, countText(bundle.count), "small");
  write(own, {x + 8, plane.bar.y - 8}, fmt::format("{:.4g} GB/s", bundle.gigabytes), "small");
}

}  // namespace

DirectLinks directLinks(const System& system, const Shown& shown, int layer) {
  DirectLinks direct;
  for (const Link& link : system.links) {
    if (link.kind != LinkKind::kNvLink || system.devices[link.b].kind != DeviceKind::kGpu) continue;
    if (!shown.inTree[link.a] || !shown.inTree[link.b]) continue;
    if (direct.links.size() == kMostDirect) {
      ++direct.leftOut;
      continue;
    }
    direct.links.push_back(&link);
    Wire& wire = direct.wires.emplace_back();
    wire.from = link.a, wire.to = link.b, wire.layer = layer;
  }
  return direct;
}

void drawDirect(Node in, const System& system, const DirectLinks& direct, const Placing& placing, double top) {
  for (size_t i = 0; i < direct.links.size(); ++i) {
    const Link& link = *direct.links[i];
    const Wire& wire = direct.wires[i];
    Node own = group(in, "bundle", bundleTip(system, link.a, link.b, link.count, link.gigabytes));
    setWidth(line(own, wirePath(wire, placing, levelOf(wire, top)), "nvlink"), link.count);
  }
}

void labelDirect(Node in, const DirectLinks& direct, double top) {
  for (size_t i = 0; i < direct.links.size(); ++i) {
    const Wire& wire = direct.wires[i];
    writeOnWire(in, {(wire.left() + wire.right()) / 2, levelOf(wire, top)},
                directText(*direct.links[i], wire.right() - wire.left()));
  }
}

void drawPlane(Node in, const System& system, const Plane& plane, const Placing& placing) {
  for (const int gpu : plane.gpus) drawBundle(in, system, gpu, plane, placing);
  rectangle(in, plane.bar, "fabric", 6);
  for (size_t i = 0; i < plane.switches.size(); ++i) drawNvSwitch(in, system, plane.switches[i], plane.boxes[i]);
}

}  // namespace tutti::drawing
