#include "drawing/wires.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "drawing/canvas.h"

namespace tutti::drawing {
namespace {

constexpr double kMargin = 5;  // between spans of one row

// An end of a wire at a box.
struct Port {
  size_t wire;
  bool start, leftwards;
  std::tuple<int, double, size_t> depth;  // the deeper a wire goes, the nearer to the middle of the box it begins
};

class Routing {
 public:
  Routing(std::vector<Wire>& wires, const Placing& placing) : wires_(wires), placing_(placing) {}
  void addPorts();
  void placePorts();
  std::vector<int> layTracks(int layers);

 private:
  double middle(int device) const { return placing_.boxes[device].middle(); }
  void addPort(size_t wire, bool start);
  void spread(const Box& box, std::vector<Port> ports, bool leftwards);

  std::vector<Wire>& wires_;
  const Placing& placing_;
  std::map<int, std::vector<Port>> ports_;  // of each box
};

void Routing::addPort(size_t wire, bool start) {
  const Wire& one = wires_[wire];
  const double here = middle(start ? one.from : one.to), there = middle(start ? one.to : one.from);
  ports_[start ? one.from : one.to].push_back({wire, start, there < here, {one.layer, std::abs(there - here), wire}});
}

void Routing::addPorts() {
  for (size_t i = 0; i < wires_.size(); ++i) {
    addPort(i, true);
    addPort(i, false);
  }
}

// Over the left half of a box or the right one; the middle is free for what leads straight down.
void Routing::spread(const Box& box, std::vector<Port> ports, bool leftwards) {
  std::erase_if(ports, [&](const Port& port) { return port.leftwards != leftwards; });
  std::ranges::sort(ports, {}, &Port::depth);
  const double step = box.width / 2 / (static_cast<double>(ports.size()) + 1);
  for (size_t i = 0; i < ports.size(); ++i) {
    const double inwards = step * static_cast<double>(i + 1);
    Wire& wire = wires_[ports[i].wire];
    (ports[i].start ? wire.fromX : wire.toX) = leftwards ? box.x + inwards : box.right() - inwards;
  }
}

void Routing::placePorts() {
  for (const auto& [device, ports] : ports_) {
    spread(placing_.boxes[device], ports, true);
    spread(placing_.boxes[device], ports, false);
  }
}

std::vector<int> Routing::layTracks(int layers) {
  std::vector<int> counts(static_cast<size_t>(layers));
  for (int layer = 0; layer < layers; ++layer) {
    std::vector<Span> spans;
    std::vector<Wire*> own;
    for (Wire& wire : wires_)
      if (wire.layer == layer) own.push_back(&wire), spans.push_back({wire.left(), wire.right()});
    const std::vector<int> rows = packed(spans);
    for (size_t i = 0; i < own.size(); ++i) {
      own[i]->track = rows[i];
      counts[layer] = std::max(counts[layer], rows[i] + 1);
    }
  }
  return counts;
}

}  // namespace

std::vector<int> route(std::vector<Wire>& wires, const Placing& placing, int layers) {
  Routing routing(wires, placing);
  routing.addPorts();
  routing.placePorts();
  return routing.layTracks(layers);
}

std::vector<int> packed(const std::vector<Span>& spans) {
  std::vector<size_t> order(spans.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return spans[i].right - spans[i].left; });
  std::vector<std::vector<Span>> rows;
  std::vector<int> result(spans.size());
  for (const size_t i : order) {
    const auto apart = [&](const Span& other) {
      return other.right + kMargin < spans[i].left || spans[i].right + kMargin < other.left;
    };
    const auto row = std::ranges::find_if(rows, [&](const auto& one) { return std::ranges::all_of(one, apart); });
    result[i] = static_cast<int>(row - rows.begin());
    (row == rows.end() ? rows.emplace_back() : *row).push_back(spans[i]);
  }
  return result;
}

std::string wirePath(const Wire& wire, const Placing& placing, double y) {
  constexpr double kRadius = 5;
  const double turn = wire.fromX < wire.toX ? kRadius : -kRadius;
  return fmt::format("M{0} {1}V{2}Q{0} {3} {4} {3}H{5}Q{6} {3} {6} {2}V{7}", number(wire.fromX),
                     number(placing.boxes[wire.from].bottom()), number(y - kRadius), number(y),
                     number(wire.fromX + turn), number(wire.toX - turn), number(wire.toX),
                     number(placing.boxes[wire.to].bottom()));
}

}  // namespace tutti::drawing
