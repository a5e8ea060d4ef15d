#include "drawing/drawing.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/plain_text.h"
#include "drawing/labels.h"
#include "drawing/nvlinks.h"
#include "drawing/tree.h"
#include "topology/warnings.h"

namespace tutti::drawing {
namespace {

using topology::Paths;
using topology::System;

constexpr double kTop = 48, kEdge = 24, kLead = 14, kAboveBar = 44;
constexpr int kDirectLayer = 0, kRingLayer = 1, kLayers = 2;
constexpr size_t kLongestTitle = 80;
constexpr double kTitleLetter = 1.7;  // as against a common one

// All that lies below the GPUs, from their row down: NVLinks among them, rings, NVSwitches.
struct Below {
  DirectLinks direct;
  RingWires rings;
  double directTop = 0, ringTop = 0, bottom = 0;
  std::vector<Plane> planes;
};

// Wires of both kinds share the feet of the GPUs.
std::vector<int> routeAll(Below& below, const Placing& placing) {
  std::vector<Wire> all = below.direct.wires;
  all.insert(all.end(), below.rings.wires.begin(), below.rings.wires.end());
  std::vector<int> tracks = route(all, placing, kLayers);
  const auto rings = all.begin() + static_cast<ptrdiff_t>(below.direct.wires.size());
  below.direct.wires.assign(all.begin(), rings);
  below.rings.wires.assign(rings, all.end());
  return tracks;
}

Below belowOf(const System& system, const std::vector<Ring>& rings, const Shown& shown, const Placing& placing) {
  Below below{directLinks(system, shown, kDirectLayer), wiresOf(rings, shown, kRingLayer), 0, 0, 0, {}};
  const std::vector<int> tracks = routeAll(below, placing);
  below.directTop = placing.bottom + (tracks[kDirectLayer] > 0 ? kLead : 0);
  below.ringTop = below.directTop + kTrackPitch * tracks[kDirectLayer] + (tracks[kRingLayer] > 0 ? kLead : 0);
  below.bottom = below.ringTop + kTrackPitch * tracks[kRingLayer];
  below.planes = planesOf(system, shown, placing, below.bottom + kAboveBar);
  for (const Plane& plane : below.planes) below.bottom = std::max(below.bottom, plane.bar.bottom());
  if (below.bottom > placing.bottom) below.bottom += kLead;
  return below;
}

// What a reader of the text is told, for who reads the file.
void describe(Node svg, const System& system) {
  std::string text;
  for (const std::string& remark : system.remarks) text += fmt::format("remark: {}\n", remark);
  for (const std::string& warning : warningsOf(system)) text += fmt::format("warning: {}\n", warning);
  if (!text.empty()) svg.insert_child_after("desc", svg.child("title")).text().set(text.c_str());
}

// What is left out, a sentence each. Returns the height and width.
Point drawNotes(Node in, const Shown& shown, const Below& below, Point at) {
  Point used;
  const auto put = [&](const std::string& text) {
    write(in, {at.x, at.y + used.y + 12}, text);
    used = {std::max(used.x, lengthOf(text)), used.y + 18};
  };
  if (!shown.leftOut.empty()) put(shown.leftOut);
  if (below.direct.leftOut > 0)
    put(fmt::format("Left out are NVLinks between {} pairs of GPUs. A picture has them between {} at most.",
                    below.direct.leftOut, kMostDirect));
  return used;
}

}  // namespace

std::vector<Ring> ringByNumber(const System& system) {
  std::vector<int> order = byNumber(system, topology::DeviceKind::kGpu);
  if (order.size() < 2) return {};
  return {{"ring by number", std::move(order)}};
}

std::string drawSystem(const System& system, const std::string& title, const std::vector<Ring>& rings) {
  const std::string name = plainText(title, kLongestTitle);
  const Shown shown = shownOf(system);
  const Paths paths(system);
  const Placing placing = placingOf(system, shown, kTop);
  const Below below = belowOf(system, rings, shown, placing);
  pugi::xml_document document = newDocument(name);
  Node svg = document.child("svg");
  describe(svg, system);
  write(svg, {kEdge, 31}, name, "title");
  drawTree(svg, system, shown, placing, below.bottom);
  drawDirect(svg, system, below.direct, placing, below.directTop);
  for (const Plane& plane : below.planes) drawPlane(svg, system, plane, placing);
  drawRings(svg, below.rings, paths, placing, below.ringTop);
  labelDirect(svg, below.direct, below.directTop);
  const Point keys = drawRingKeys(svg, rings, system, paths, {kEdge, below.bottom + 16});
  const Point notes = drawNotes(svg, shown, below, {kEdge, below.bottom + 16 + keys.y});
  const double width =
      std::max({placing.width, keys.x + 2 * kEdge, notes.x + 2 * kEdge, lengthOf(name) * kTitleLetter + 2 * kEdge});
  return finished(document, width, below.bottom + 16 + keys.y + notes.y + 16);
}

}  // namespace tutti::drawing
