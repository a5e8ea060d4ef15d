#include "drawing/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "drawing/labels.h"

namespace tutti::drawing {
namespace {

using topology::DeviceKind;
using topology::Link;
using topology::LinkKind;
using topology::System;

const char* styleOfKind(DeviceKind kind) {
  constexpr const char* kStyles[] = {"numa", "switch", "gpu", "nvswitch", "nic", "nic"};
  return kStyles[static_cast<size_t>(kind)];
}

void drawBox(Node in, const System& system, const Placing& placing, int device) {
  Node own = group(in, "device", deviceText(system, device));
  rectangle(own, placing.boxes[device], styleOfKind(system.devices[device].kind));
  writeLines(own, placing.boxes[device], boxLines(system, device));
}

// From the foot of the one above: to the top of a box, or beside a stack of NICs to each of them.
void drawUpLink(Node in, const System& system, const Placing& placing, int device) {
  const topology::Device& one = system.devices[device];
  if (one.parent < 0) return;
  const Box &above = placing.boxes[one.parent], &box = placing.boxes[device];
  const bool nic = one.kind == DeviceKind::kNic;
  const double x = nic ? box.x - 9 : box.middle();
  line(in,
       fmt::format("M{} {}V{}H{}V{}{}", number(above.middle()), number(above.bottom()), number(above.bottom() + 12),
                   number(x), number(nic ? box.centre() : box.y), nic ? "H" + number(box.x) : ""),
       "pci");
  if (!nic) write(in, {x + 5, box.y - 6}, pciText(system, device), "small");
}

// Links between switches beside the tree.
void drawPeers(Node in, const System& system, const Shown& shown, const Placing& placing) {
  for (const Link& link : system.links) {
    if (link.kind != LinkKind::kPci || system.devices[link.b].parent == link.a) continue;
    if (!shown.inTree[link.a] || !shown.inTree[link.b]) continue;
    const Box &a = placing.boxes[link.a], &b = placing.boxes[link.b];
    line(in,
         fmt::format("M{} {}C{} {} {} {} {} {}", number(a.middle()), number(a.y), number(a.middle()), number(a.y - 30),
                     number(b.middle()), number(b.y - 30), number(b.middle()), number(b.y)),
         "peer");
  }
}

// "between memory nodes: 16 GB/s"
std::string socketsText(const System& system, const Host& host) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const Link& link : system.links) {
    if (link.kind != LinkKind::kSockets || std::ranges::find(host.nodes, link.a) == host.nodes.end()) continue;
    least = std::min(least, link.gigabytes);
    most = std::max(most, link.gigabytes);
  }
  return least < most ? fmt::format("between memory nodes: {:.4g} to {:.4g} GB/s", least, most)
                      : fmt::format("between memory nodes: {:.4g} GB/s", most);
}

void drawSockets(Node in, const System& system, const Placing& placing, const Host& host) {
  if (host.nodes.size() < 2) return;
  const Box bar = socketsBar(host, placing);
  for (const int node : host.nodes) {
    const Box& panel = placing.panels[node];
    line(in, fmt::format("M{} {}V{}", number(panel.middle()), number(bar.bottom()), number(placing.boxes[node].y)),
         "pci");
  }
  rectangle(in, bar, "sockets");
  write(in, {bar.middle(), bar.centre() + 4}, socketsText(system, host), "", "middle");
}

void drawHost(Node in, const System& system, const Placing& placing, const Host& host, double bottom) {
  Box box = host.box;
  box.height = bottom - box.y;
  rectangle(in, box, "host", 8);
  write(in, {box.x + 12, box.y + 20}, host.name.empty() ? "host" : "host " + host.name, "name");
  for (const int node : host.nodes) rectangle(in, placing.panels[node], "panel", 6);
  drawSockets(in, system, placing, host);
}

}  // namespace

void drawTree(Node in, const System& system, const Shown& shown, const Placing& placing, double bottom) {
  for (const Host& host : placing.hosts) drawHost(in, system, placing, host, bottom);
  const int count = static_cast<int>(system.devices.size());
  for (int i = 0; i < count; ++i)
    if (shown.inTree[i]) drawUpLink(in, system, placing, i);
  drawPeers(in, system, shown, placing);
  for (int i = 0; i < count; ++i)
    if (shown.inTree[i]) drawBox(in, system, placing, i);
}

}  // namespace tutti::drawing
