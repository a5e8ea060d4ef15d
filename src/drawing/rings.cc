#include "drawing/rings.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "drawing/style.h"

namespace tutti::drawing {
namespace {

using topology::Path;
using topology::Paths;
using topology::PathType;
using topology::System;

constexpr double kBends = 8;       // that much of a wire is no straight
constexpr size_t kMostNamed = 32;  // GPUs of a ring in its line

std::string styleOf(size_t ring) { return fmt::format("ring r{}", ring % kRingColours); }

// What fits on so much of a wire.
std::string hopText(const Path& path, double room) {
  const std::string type(nameOf(path.type)), whole = fmt::format("{} {:.4g} GB/s", type, path.gigabytes);
  if (lengthOnWire(whole) + kBends < room) return whole;
  return lengthOnWire(type) + kBends < room ? type : "";
}

// It points upwards, into the box.
std::string arrowPath(double x, double y) {
  return fmt::format("M{} {}L{} {}L{} {}", number(x - 4), number(y + 8), number(x), number(y + 1), number(x + 4),
                     number(y + 8));
}

void drawHop(Node in, const Wire& wire, const Placing& placing, double top, size_t ring) {
  line(in, wirePath(wire, placing, levelOf(wire, top)), styleOf(ring));
  line(in, arrowPath(wire.toX, placing.boxes[wire.to].bottom()), styleOf(ring));
}

void labelHop(Node in, const Wire& wire, const Path& path, double top) {
  const std::string text = hopText(path, wire.right() - wire.left());
  if (!text.empty()) writeOnWire(in, {(wire.left() + wire.right()) / 2, levelOf(wire, top)}, text);
}

size_t after(size_t place, const Ring& ring) { return place + 1 == ring.order.size() ? 0 : place + 1; }

std::string shortName(const System& system, int gpu) {
  const auto& one = system.devices[gpu].gpu;
  return one && one->number >= 0 ? fmt::to_string(one->number) : nameOf(system, gpu);
}

std::string orderText(const Ring& ring, const System& system) {
  std::string text;
  const size_t named = std::min(ring.order.size(), kMostNamed);
  for (size_t i = 0; i < named; ++i) text += shortName(system, ring.order[i]) + " → ";
  if (named < ring.order.size()) text += fmt::format("{} more → ", ring.order.size() - named);
  return text + shortName(system, ring.order.front());
}

// "7 NVL, 1 SYS, 9.6 GB/s at the narrowest"
std::string pathsText(const Ring& ring, const Paths& paths) {
  std::map<PathType, int> counts;
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < ring.order.size(); ++i) {
    const Path& path = paths.between(ring.order[i], ring.order[after(i, ring)]);
    ++counts[path.type];
    least = std::min(least, path.gigabytes);
  }
  std::string text;
  for (const auto& [type, count] : counts) text += fmt::format("{} {}, ", count, nameOf(type));
  return fmt::format("{}{:.4g} GB/s at the narrowest", text, least);
}

}  // namespace

RingWires wiresOf(const std::vector<Ring>& rings, const Shown& shown, int layer) {
  RingWires made;
  for (size_t i = 0; i < std::min(rings.size(), kMostRings); ++i) {
    const Ring& ring = rings[i];
    made.begins.push_back(made.wires.size());
    for (size_t k = 0; ring.order.size() > 1 && k < ring.order.size(); ++k) {
      const int from = ring.order[k], to = ring.order[after(k, ring)];
      if (!shown.inTree[from] || !shown.inTree[to]) continue;
      Wire& wire = made.wires.emplace_back();
      wire.from = from, wire.to = to, wire.layer = layer;
    }
  }
  made.begins.push_back(made.wires.size());
  return made;
}

void drawRings(Node in, const RingWires& rings, const Paths& paths, const Placing& placing, double top) {
  for (size_t ring = 0; ring + 1 < rings.begins.size(); ++ring) {
    Node own = group(in, "rings");
    for (size_t i = rings.begins[ring]; i < rings.begins[ring + 1]; ++i)
      drawHop(own, rings.wires[i], placing, top, ring);
  }
  for (const Wire& wire : rings.wires) labelHop(in, wire, paths.between(wire.from, wire.to), top);  // over all wires
}

Point drawRingKeys(Node in, const std::vector<Ring>& rings, const System& system, const Paths& paths, Point at) {
  constexpr double kKeyLine = 18, kStroke = 30;
  Point used;
  const auto put = [&](const std::string& text) {
    write(in, {at.x + kStroke + 8, at.y + used.y + 12}, text);
    used = {std::max(used.x, kStroke + 8 + lengthOf(text)), used.y + kKeyLine};
  };
  for (size_t i = 0; i < std::min(rings.size(), kMostRings); ++i) {
    if (rings[i].order.size() < 2) continue;
    const std::string y = number(at.y + used.y + 8);
    line(in, fmt::format("M{} {}H{}", number(at.x), y, number(at.x + kStroke)), styleOf(i));
    put(fmt::format("{}: GPU {}: {}", rings[i].name, orderText(rings[i], system), pathsText(rings[i], paths)));
  }
  if (rings.size() > kMostRings)
    put(fmt::format("Left out are rings: {}. A picture has {} at most.", rings.size() - kMostRings, kMostRings));
  return used;
}

}  // namespace tutti::drawing
